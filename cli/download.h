// A run's result files to this machine.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "cli/context.h"

namespace tp::cli {

// Into `directory`/`path`, whole and equal to the server's SHA-256, or not at all; directories are made.
// What an earlier call was broken off at is gone on with: it is kept as `.NAME.HASH.part` beside the
// file. The path comes from the server and is not trusted: INVALID_ARGUMENT where it would leave the
// directory, by `..` or through a link. DATA_LOSS: the bytes are not those of the server, twice.
absl::Status DownloadResult(Context& context, const std::string& run, const std::string& path,
                            const std::string& directory);

// The bytes to stdout, checked at the end.
absl::Status PrintResult(Context& context, const std::string& run, const std::string& path);

// Relative, without `..`, empty parts or control characters. Pure.
bool IsSafeResultPath(std::string_view path);

}  // namespace tp::cli
