#include "snapshot/checkout.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/status.h"
#include "snapshot/layout.h"
#include "snapshot/manifest_file.h"
#include "snapshot/path.h"

namespace tp::snapshot {
namespace {

constexpr mode_t kTreeMode = 0755;
constexpr size_t kCopyBytes = 256 * 1024;

absl::Status CopyByHand(int from, int to, const std::string& path) {
  std::vector<char> buffer(kCopyBytes);
  for (;;) {
    const ssize_t got = read(from, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ErrnoStatus(errno, "read the content of", path);
    if (got == 0) return absl::OkStatus();
    TP_RETURN_IF_ERROR(WriteAll(to, {buffer.data(), static_cast<size_t>(got)}, path));
  }
}

// Inside the kernel where it can, from wherever it stopped by hand.
absl::Status Copy(int from, int to, int64_t bytes, const std::string& path) {
  while (bytes > 0) {
    const ssize_t copied = copy_file_range(from, nullptr, to, nullptr, static_cast<size_t>(bytes), 0);
    if (copied <= 0) break;
    bytes -= copied;
  }
  return bytes > 0 ? CopyByHand(from, to, path) : absl::OkStatus();
}

// Writes entries beneath a directory, opening each step without following links.
class TreeWriter {
 public:
  TreeWriter(const Directory& folder, Directory root)
      : folder_(folder), root_path_(root.path), parent_(std::move(root)) {}

  absl::Status Write(const Entry& entry) {
    TP_RETURN_IF_ERROR(EnterParentOf(entry.path));
    const std::string name(NameOf(entry.path));
    switch (entry.kind) {
      case EntryKind::kFile:
        return WriteFile(entry, name);
      case EntryKind::kDirectory:
        return WriteDirectory(name);
      case EntryKind::kSymlink:
        return WriteLink(entry, name);
    }
    return absl::OkStatus();
  }

  const CheckoutCost& cost() const { return cost_; }

 private:
  // Consecutive entries mostly share it.
  absl::Status EnterParentOf(std::string_view path) {
    const std::string_view parent = ParentOf(path);
    if (parent == parent_path_) return absl::OkStatus();
    TP_ASSIGN_OR_RETURN(parent_, MakeDirectoriesBeneath(root_path_, parent, kTreeMode));
    parent_path_ = parent;
    return absl::OkStatus();
  }

  absl::Status WriteDirectory(const std::string& name) {
    if (mkdirat(parent_.fd.get(), name.c_str(), kTreeMode) != 0 ||
        fchmodat(parent_.fd.get(), name.c_str(), kTreeMode, 0) != 0) {
      return ErrnoStatus(errno, "make the directory", parent_.At(name));
    }
    return absl::OkStatus();
  }

  absl::Status WriteLink(const Entry& entry, const std::string& name) {
    return symlinkat(entry.link_target.c_str(), parent_.fd.get(), name.c_str()) == 0
               ? absl::OkStatus()
               : ErrnoStatus(errno, "link", parent_.At(name));
  }

  absl::Status WriteFile(const Entry& entry, const std::string& name) {
    const std::string blob_path = BlobPath(entry.sha256);
    const UniqueFd blob(openat(folder_.fd.get(), blob_path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    if (!blob.valid()) return ErrnoStatus(errno, "open", folder_.At(blob_path));
    const std::string path = parent_.At(name);
    const int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
    const UniqueFd file(openat(parent_.fd.get(), name.c_str(), flags, 0600));
    if (!file.valid()) return ErrnoStatus(errno, "create", path);
    TP_RETURN_IF_ERROR(Fill(blob.get(), file.get(), entry.bytes, path));
    return fchmod(file.get(), entry.executable ? 0755 : 0644) == 0 ? absl::OkStatus()
                                                                   : ErrnoStatus(errno, "set the mode of", path);
  }

  absl::Status Fill(int blob, int file, int64_t bytes, const std::string& path) {
    ++cost_.files;
    if (reflinks_ && bytes > 0) {
      // What a file system cannot do for one file it cannot do for the next.
      reflinks_ = ioctl(file, FICLONE, blob) == 0;
      if (reflinks_) {
        ++cost_.reflinked;
        return absl::OkStatus();
      }
    }
    cost_.copied_bytes += bytes;
    return Copy(blob, file, bytes, path);
  }

  const Directory& folder_;
  const std::string root_path_;
  Directory parent_;
  std::string parent_path_;
  bool reflinks_ = true;
  CheckoutCost cost_;
};

}  // namespace

absl::StatusOr<CheckoutCost> Checkout(const std::string& storage_root, const std::string& id,
                                      const std::string& destination) {
  if (!IsSha256(id)) return InvalidArgument("'{}' is no snapshot id", id);
  TP_ASSIGN_OR_RETURN(const Directory folder, OpenDirectory(FolderPath(storage_root)));
  TP_ASSIGN_OR_RETURN(const Manifest manifest, ReadManifest(folder, id));
  TP_ASSIGN_OR_RETURN(Directory root, OpenDirectory(destination));
  TreeWriter writer(folder, std::move(root));
  for (const Entry& entry : manifest.entries()) TP_RETURN_IF_ERROR(writer.Write(entry));
  return writer.cost();
}

}  // namespace tp::snapshot
