// What the store asks of the disk beneath it: a filesystem that a database can trust, free space, and a
// ballast that can be given up so that running work is followed to its end on a full disk (DESIGN 12).
// Safe from any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tp::store {

// The name of a network filesystem by statfs's f_type; nothing for those of this machine.
std::optional<std::string_view> NetworkFilesystem(int64_t filesystem_type);

// FAILED_PRECONDITION where `directory` is on a network filesystem: their locks and their shared memory
// are not what SQLite's write-ahead log needs.
absl::Status CheckFilesystem(const std::string& directory);

// What an unprivileged process could still write there.
absl::StatusOr<int64_t> FreeBytes(const std::string& directory);

// Makes `path` take up `bytes` of disk, or leaves it as it is where it does already. RESOURCE_EXHAUSTED
// where they are not there; then nothing is left behind.
absl::Status KeepBallast(const std::string& path, int64_t bytes);

// Gives the space back. True where there was some.
absl::StatusOr<bool> ReleaseBallast(const std::string& path);

}  // namespace tp::store
