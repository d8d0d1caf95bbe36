// Hashes, random bytes and their comparison. Thread-safe, no state.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tp::auth {

// 32 raw bytes.
std::string HmacSha256(std::string_view key, std::string_view bytes);

std::string Hex(std::string_view bytes);
std::string Sha256Hex(std::string_view bytes);

// From the kernel; ends the process if it has none to give, since nothing safe could follow.
std::string RandomBytes(size_t count);

// Takes the same time wherever they differ; lengths are not secret.
bool EqualInConstantTime(std::string_view a, std::string_view b);

}  // namespace tp::auth
