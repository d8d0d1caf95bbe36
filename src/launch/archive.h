// Reads a snapshot archive (plain tar: ustar, pax, GNU) entry by entry and lets nothing through that
// could leave the tree it is unpacked into: absolute names, `..`, links that lead out, devices, names
// beneath a link, a name twice. Not thread-safe; one pass.
//
// Errors: INVALID_ARGUMENT where the archive is not acceptable, naming the entry; RESOURCE_EXHAUSTED
// where it exceeds a limit; those of base/file.h where it cannot be read.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

struct archive;
struct archive_entry;

namespace tp::launch {

struct SnapshotLimits {
  int64_t max_entries = 1'000'000;
  int64_t max_bytes = int64_t{16} << 30;  // of all files, unpacked
  size_t max_path_bytes = 4096;
};

enum class EntryKind { kFile, kDirectory, kSymlink, kHardLink };

struct ArchiveEntry {
  std::string path;  // relative, without `.`, `..` or empty components
  EntryKind kind = EntryKind::kFile;
  mode_t mode = 0;  // permission bits only
  int64_t mtime_s = 0;
  std::string link_target;  // as stored for a symbolic link; an earlier file's path for a hard link
};

class ArchiveReader {
 public:
  static absl::StatusOr<ArchiveReader> Open(const std::string& path, const SnapshotLimits& limits);

  // The next entry, or nothing at the end.
  absl::StatusOr<std::optional<ArchiveEntry>> Next();

  // The next bytes of the current file, valid until the next call; empty at its end.
  absl::StatusOr<std::string_view> ReadData();

 private:
  struct Free {
    void operator()(archive* handle) const;
  };

  ArchiveReader(std::string path, const SnapshotLimits& limits);
  absl::Status Broken() const;
  absl::StatusOr<ArchiveEntry> Convert(archive_entry* raw);
  absl::Status CheckName(const ArchiveEntry& entry) const;
  absl::Status Remember(const ArchiveEntry& entry);

  std::string path_;
  SnapshotLimits limits_;
  std::unique_ptr<archive, Free> handle_;
  std::vector<char> buffer_;
  std::map<std::string, EntryKind, std::less<>> seen_;  // implied directories included
  int64_t entries_ = 0;
  int64_t bytes_ = 0;
};

// Unpacks into `destination`, which must exist and be empty. What was unpacked before an error stays.
absl::Status ExtractSnapshot(const std::string& archive_path, const std::string& destination,
                             const SnapshotLimits& limits);

struct SnapshotContents {
  int64_t files = 0;
  int64_t bytes = 0;
};
// Reads the archive to its end.
absl::StatusOr<SnapshotContents> CheckSnapshot(const std::string& archive_path, const SnapshotLimits& limits);

}  // namespace tp::launch
