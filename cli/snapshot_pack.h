// The working directory as one archive: tar (pax), the same bytes for the same content. Sorted names,
// mtime 0, uid and gid 0, modes 0755 or 0644. Blocking file I/O.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "cli/file_tree.h"
#include "cli/unique_fd.h"

namespace tp::cli {

inline constexpr int64_t kMaxSnapshotBytes = int64_t{2} << 30;

struct PackedSnapshot {
  UniqueFd archive;  // a file without a name, positioned anywhere
  int64_t archive_bytes = 0;
  std::string sha256;  // of the archive, hex
  int64_t files = 0;
  int64_t content_bytes = 0;
};

// Called now and then with the content read so far and all of it.
using PackProgress = std::function<void(int64_t done_bytes, int64_t total_bytes)>;

// Needs UseUtf8Locale. INVALID_ARGUMENT: see ScanTree, a file that shrank meanwhile, or no room for the
// archive in $TMPDIR.
absl::StatusOr<PackedSnapshot> PackTree(const FileTree& tree, const PackProgress& progress);

}  // namespace tp::cli
