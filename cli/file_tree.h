// What of a directory goes into a snapshot: every file, directory and link but the default excludes
// (.git, __pycache__, venv, .venv, node_modules, *.pyc). Blocking file I/O.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/unique_fd.h"

namespace tp::cli {

enum class EntryKind : uint8_t { kFile, kDirectory, kSymlink };

struct TreeEntry {
  std::string path;  // relative to the root, `/` between the parts
  EntryKind kind = EntryKind::kFile;
  bool executable = false;
  int64_t bytes = 0;        // of a file
  std::string link_target;  // of a link
};

struct FileTree {
  UniqueFd root;
  std::vector<TreeEntry> entries;  // by path, a directory before what is in it
  int64_t files = 0;
  int64_t bytes = 0;
};

// INVALID_ARGUMENT names the path: devices, sockets and pipes, links that are absolute or leave the
// tree, what cannot be read, or more than `max_bytes` (then the largest files).
absl::StatusOr<FileTree> ScanTree(const std::string& directory, int64_t max_bytes);

// By names alone: does `target`, seen from the link at `link_path`, never climb above the root?
bool StaysInside(std::string_view link_path, std::string_view target);

// `1.5 MiB`
std::string HumanBytes(int64_t bytes);

}  // namespace tp::cli
