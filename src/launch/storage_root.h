// The storage's root as it was when a backend began. A value; thread-safe.
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tp::launch {

class StorageRoot {
 public:
  // Proves (ProbeStorage) that claims and records can be kept there, and remembers which directory it is. `path` is
  // absolute.
  static absl::StatusOr<StorageRoot> Open(std::string path);

  const std::string& path() const { return path_; }  // without a slash at its end
  // UNAVAILABLE, with a sentence: another directory is there now, as where its filesystem is not mounted. What is
  // missing beneath it proves nothing.
  absl::Status Check() const;

 private:
  StorageRoot(std::string path, dev_t device, ino_t inode) : path_(std::move(path)), device_(device), inode_(inode) {}

  std::string path_;
  dev_t device_;
  ino_t inode_;
};

}  // namespace tp::launch
