// A run's result files to this machine.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "cli/client.h"

namespace tp::cli {

// Into `directory`/`path`, whole or not at all; directories are made. The path comes from the server
// and is not trusted: INVALID_ARGUMENT where it would leave the directory, by `..` or through a link.
absl::Status DownloadResult(Client& client, const std::string& run, const std::string& path,
                            const std::string& directory);

// The bytes to a file descriptor.
absl::Status PrintResult(Client& client, const std::string& run, const std::string& path, int fd);

// Relative, without `..`, empty parts or control characters. Pure.
bool IsSafeResultPath(std::string_view path);

}  // namespace tp::cli
