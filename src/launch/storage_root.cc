#include "launch/storage_root.h"

#include <sys/stat.h>

#include <cerrno>

#include "base/file.h"
#include "base/status.h"
#include "launch/attempt_dir.h"

namespace tp::launch {

absl::StatusOr<StorageRoot> StorageRoot::Open(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  if (!path.starts_with('/')) return InvalidArgument("storage.root: '{}' is not an absolute path", path);
  TP_RETURN_IF_ERROR(ProbeStorage(path));
  struct stat root {};
  if (stat(path.c_str(), &root) != 0) return ErrnoStatus(errno, "look at", path);
  return StorageRoot(std::move(path), root.st_dev, root.st_ino);
}

absl::Status StorageRoot::Check() const {
  struct stat root {};
  if (stat(path_.c_str(), &root) == 0 && root.st_dev == device_ && root.st_ino == inode_) return absl::OkStatus();
  return Unavailable("{} is not the directory it was when tpd began: is its filesystem mounted?", path_);
}

}  // namespace tp::launch
