#include "store/disk.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "base/fd.h"
#include "base/file.h"
#include "base/status.h"

namespace tp::store {
namespace {

struct NamedFilesystem {
  int64_t type;
  std::string_view name;
};

// linux/magic.h knows only some of them.
constexpr std::array<NamedFilesystem, 13> kNetworkFilesystems = {{
    {0x6969, "NFS"},
    {0x517B, "SMB"},
    {0xFF534D42, "CIFS"},
    {0xFE534D42, "SMB2"},
    {0x5346414F, "AFS"},
    {0x6B414653, "AFS"},
    {0x73757245, "Coda"},
    {0x564C, "NCP"},
    {0x00C36400, "Ceph"},
    {0x0BD00BD0, "Lustre"},
    {0x47504653, "GPFS"},
    {0x19830326, "BeeGFS"},
    {0x01021997, "9P"},
}};

}  // namespace

std::optional<std::string_view> NetworkFilesystem(int64_t filesystem_type) {
  for (const NamedFilesystem& filesystem : kNetworkFilesystems) {
    if (filesystem.type == filesystem_type) return filesystem.name;
  }
  return std::nullopt;
}

absl::Status CheckFilesystem(const std::string& directory) {
  struct statfs about {};
  if (statfs(directory.c_str(), &about) != 0) return ErrnoStatus(errno, "look at the filesystem of", directory);
  // f_type is signed on some machines; the numbers have 32 bits.
  const auto network = NetworkFilesystem(static_cast<int64_t>(static_cast<uint32_t>(about.f_type)));
  if (!network) return absl::OkStatus();
  return FailedPrecondition("{} is on {}: a database there can be damaged; name a data directory on a local disk",
                            directory, *network);
}

absl::StatusOr<int64_t> FreeBytes(const std::string& directory) {
  struct statvfs about {};
  if (statvfs(directory.c_str(), &about) != 0) return ErrnoStatus(errno, "look at the filesystem of", directory);
  return static_cast<int64_t>(about.f_bavail) * static_cast<int64_t>(about.f_frsize);
}

absl::Status KeepBallast(const std::string& path, int64_t bytes) {
  const UniqueFd fd(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd.valid()) return ErrnoStatus(errno, "open", path);
  const int error = posix_fallocate(fd.get(), 0, bytes);
  if (error == 0) return fsync(fd.get()) == 0 ? absl::OkStatus() : ErrnoStatus(errno, "fsync", path);
  unlink(path.c_str());
  return ErrnoStatus(error, "take up space with", path);
}

absl::StatusOr<bool> ReleaseBallast(const std::string& path) {
  if (unlink(path.c_str()) == 0) return true;
  if (errno == ENOENT) return false;
  return ErrnoStatus(errno, "remove", path);
}

}  // namespace tp::store
