// The digests of files as they were when last read, so that an unchanged file is not read again. One file a
// submitted directory, in $XDG_CACHE_HOME/tp (else ~/.cache/tp); whatever is wrong with it, it is as if it
// were not there. One thread at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <sys/stat.h>

#include "absl/container/flat_hash_map.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/strings.h"

namespace tp::cli {

// What changes when a file does.
struct FileStamp {
  uint64_t device = 0;
  uint64_t inode = 0;
  int64_t bytes = 0;
  int64_t mtime_ns = 0;
  int64_t ctime_ns = 0;
  bool operator==(const FileStamp&) const = default;
};

FileStamp StampOf(const struct stat& about);

class StatCache {
 public:
  // Of `directory`, an absolute path. To be called before the directory is looked at: what was changed since
  // then, or just before, may change again without a new time, and is not remembered.
  static StatCache Open(const std::string& directory);

  // The digest of `path`, relative to the directory, if the file is what it was.
  std::optional<std::string> Find(std::string_view path, const FileStamp& stamp) const;

  // For the next time.
  void Remember(const std::string& path, const FileStamp& stamp, const std::string& sha256);

  // Replaces the file by what was remembered since Open. A cache that can't be written is not missed.
  void Save();

 private:
  struct Known {
    FileStamp stamp;
    std::string sha256;
  };

  StatCache() = default;
  bool Begin(const std::string& directory);
  void Load();
  bool IsSettled(const FileStamp& stamp) const;

  Directory folder_;  // no fd: nothing is kept
  std::string name_;
  int64_t opened_ns_ = 0;  // by the clock that stamps files
  absl::flat_hash_map<std::string, Known, StringHash, std::equal_to<>> known_;
  std::string next_;  // the text of the next file
};

}  // namespace tp::cli
