// Reading what jobs wrote. Everything below a run's directory is under the job's control while it
// runs: no component of a path may be a symbolic link, nothing but regular files is opened, and no open
// can hang on a pipe. Blocking I/O; safe from any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/fd.h"
#include "base/file.h"

namespace tp::api {

// Walks from `root`, which is trusted, down `relative`. NOT_FOUND; INVALID_ARGUMENT: a part is empty,
// `.` or `..`; FAILED_PRECONDITION: a link or another kind of file is in the way.
absl::StatusOr<Directory> OpenDirectoryBeneath(const std::string& root, std::string_view relative);

// A regular file, to read.
absl::StatusOr<UniqueFd> OpenRegularFile(const Directory& directory, const std::string& name);

// The same for `a/b/c` below `directory`.
absl::StatusOr<UniqueFd> OpenFileBeneath(const Directory& directory, std::string_view path);

struct FileEntry {
  std::string path;  // below the directory that was walked, `/` between the parts
  int64_t bytes = 0;
  absl::Time modified_at;
  bool operator==(const FileEntry&) const = default;
};

// Regular files below `directory`, by path. Links and special files are left out. RESOURCE_EXHAUSTED:
// more than `max_entries` or folders too deep.
absl::StatusOr<std::vector<FileEntry>> ListFilesBeneath(const Directory& directory, size_t max_entries);

// Names in one directory, unsorted, without `.` and `..`.
absl::StatusOr<std::vector<std::string>> ListNames(const Directory& directory);

// Up to `max_bytes` from `offset`; empty at the end.
absl::StatusOr<std::string> ReadAt(int fd, int64_t offset, size_t max_bytes, std::string_view path);

absl::StatusOr<int64_t> SizeOf(int fd, std::string_view path);

}  // namespace tp::api
