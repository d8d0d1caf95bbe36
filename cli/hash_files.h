// The digests of a tree's files: remembered ones where the file is unchanged, else by reading it.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/file_tree.h"
#include "cli/progress.h"
#include "cli/stat_cache.h"

namespace tp::cli {

// Fills in what the cache remembers. The bytes of the files that have to be read.
int64_t RecallDigests(const StatCache& cache, FileTree& tree);

struct HashCost {
  int64_t files_read = 0;
  int64_t bytes_read = 0;
};

// What the next run recalls.
void RememberDigests(const FileTree& tree, StatCache& cache);

// Reads every file that has no digest yet, on several threads. INVALID_ARGUMENT: one that can't be read, or
// that changed meanwhile.
absl::StatusOr<HashCost> HashFiles(FileTree& tree, Progress& progress);

}  // namespace tp::cli
