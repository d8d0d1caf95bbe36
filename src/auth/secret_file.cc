#include "auth/secret_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>

#include "auth/digest.h"
#include "base/fault_point.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/status.h"

namespace tp::auth {
namespace {

constexpr size_t kMaxSecretBytes = 4096;

absl::Status CheckPrivate(int fd, const std::string& path) {
  struct stat info {};
  if (fstat(fd, &info) != 0) return ErrnoStatus(errno, "look at", path);
  if (!S_ISREG(info.st_mode)) return FailedPrecondition("{} is not a regular file: move it away", path);
  if (info.st_uid != geteuid()) {
    return FailedPrecondition("{} belongs to uid {}, not to {}: chown or move it", path, info.st_uid, geteuid());
  }
  if ((info.st_mode & 077) != 0) return FailedPrecondition("{} can be read by others: chmod 600 {}", path, path);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> ReadSecretFile(const std::string& path) {
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!fd.valid()) return ErrnoStatus(errno, "read", path);
  TP_RETURN_IF_ERROR(CheckPrivate(fd.get(), path));
  std::array<char, kMaxSecretBytes> buffer{};
  const ssize_t got = read(fd.get(), buffer.data(), buffer.size());
  if (got < 0) return ErrnoStatus(errno, "read", path);
  std::string content(buffer.data(), static_cast<size_t>(got));
  if (!content.empty() && content.back() == '\n') content.pop_back();
  return content;
}

absl::Status WriteSecretFile(const std::string& path, std::string_view content) {
  const std::filesystem::path where(path);
  TP_ASSIGN_OR_RETURN(const Directory directory, OpenDirectory(where.parent_path().string()));
  ReachFaultPoint(FaultPoint::kBeforeSecretFile);
  TP_RETURN_IF_ERROR(ReplaceFile(directory, where.filename().string(), content, 0600, Sync::kDurable));
  ReachFaultPoint(FaultPoint::kAfterSecretFile);
  return absl::OkStatus();
}

absl::StatusOr<std::string> LoadOrCreateKey(const std::string& path, size_t bytes) {
  auto key = ReadSecretFile(path);
  if (key.ok() && key->size() == 2 * bytes) return key;
  if (!key.ok() && !absl::IsNotFound(key.status())) return key.status();
  std::string fresh = Hex(RandomBytes(bytes));
  TP_RETURN_IF_ERROR(WriteSecretFile(path, fresh + "\n"));
  return fresh;
}

}  // namespace tp::auth
