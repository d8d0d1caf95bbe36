// What of a directory goes into a snapshot: every file, directory and link that no rule leaves out. Blocking
// file I/O; no file's content is read but that of .tpignore.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/fd.h"
#include "cli/ignore_rules.h"
#include "cli/stat_cache.h"
#include "snapshot/manifest.h"

namespace tp::cli {

struct LeftOut {
  std::string path;  // of a directory with a `/` at its end; what is in it is not listed
  IgnoreRule rule;
};

struct FileTree {
  std::string path;  // of the root, without links
  UniqueFd root;
  std::vector<snapshot::Entry> entries;  // a directory before what is in it; without digests
  std::vector<FileStamp> stamps;         // of the entries
  std::vector<LeftOut> left_out;
  int64_t files = 0;
  int64_t bytes = 0;
  int64_t stats = 0;  // calls that this took: one for each entry
};

// The directory without links on the way, as the caches know it. INVALID_ARGUMENT: there is none.
absl::StatusOr<std::string> ResolveDirectory(const std::string& directory);

// INVALID_ARGUMENT names the path: devices, sockets and pipes, and what cannot be read. `directory` is as
// ResolveDirectory gives it.
absl::StatusOr<FileTree> ScanTree(const std::string& directory);

}  // namespace tp::cli
