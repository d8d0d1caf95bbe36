#include "base/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <system_error>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/status.h"

namespace tp {
namespace {

constexpr off_t kFirstRead = 4096;
constexpr absl::Duration kLockPatience = absl::Seconds(2);

absl::StatusCode CodeOf(int error) {
  switch (error) {
    case ENOENT:
      return absl::StatusCode::kNotFound;
    case EEXIST:
      return absl::StatusCode::kAlreadyExists;
    case EACCES:
    case EPERM:
    case EROFS:
      return absl::StatusCode::kPermissionDenied;
    case ENOSPC:
    case EDQUOT:
      return absl::StatusCode::kResourceExhausted;
    default:
      return absl::StatusCode::kUnavailable;
  }
}

// A new file with these bytes under a temporary name in the directory.
absl::StatusOr<std::string> WriteTemporary(const Directory& directory, std::string_view bytes, mode_t mode, Sync sync) {
  std::string name = ".tmp." + RandomName();
  const std::string path = directory.At(name);
  UniqueFd fd(openat(directory.fd.get(), name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode));
  if (!fd.valid()) return ErrnoStatus(errno, "create", path);
  absl::Status status = WriteAll(fd.get(), bytes, path);
  if (status.ok() && fchmod(fd.get(), mode) != 0) status = ErrnoStatus(errno, "set the mode of", path);
  if (status.ok() && sync == Sync::kDurable && fsync(fd.get()) != 0) status = ErrnoStatus(errno, "fsync", path);
  if (!status.ok()) {
    unlinkat(directory.fd.get(), name.c_str(), 0);
    return status;
  }
  return name;
}

absl::Status MakeDirectory(int parent, const std::string& name, mode_t mode, const std::string& path) {
  if (mkdirat(parent, name.c_str(), mode) == 0) {
    // The process's umask does not decide who reads the records.
    return fchmodat(parent, name.c_str(), mode, 0) == 0 ? absl::OkStatus()
                                                        : ErrnoStatus(errno, "set the mode of", path);
  }
  return errno == EEXIST ? absl::OkStatus() : ErrnoStatus(errno, "make the directory", path);
}

absl::StatusOr<Directory> EnterDirectory(const Directory& parent, const std::string& name) {
  std::string path = parent.At(name);
  UniqueFd fd(openat(parent.fd.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd.valid()) return ErrnoStatus(errno, "open the directory", path);
  return Directory{std::move(fd), std::move(path)};
}

absl::Status RemoveEntries(const Directory& directory) {
  UniqueFd copy(fcntl(directory.fd.get(), F_DUPFD_CLOEXEC, 0));
  std::unique_ptr<DIR, int (*)(DIR*)> stream(fdopendir(copy.get()), closedir);
  if (!stream) return ErrnoStatus(errno, "list", directory.path);
  copy.release();
  for (;;) {
    errno = 0;
    const dirent* entry = readdir(stream.get());
    if (entry == nullptr) return errno == 0 ? absl::OkStatus() : ErrnoStatus(errno, "list", directory.path);
    const std::string name = entry->d_name;
    if (name != "." && name != "..") TP_RETURN_IF_ERROR(RemoveTree(directory, name));
  }
}

}  // namespace

absl::Status ErrnoStatus(int error, std::string_view doing, std::string_view path) {
  return Error(CodeOf(error), "cannot {} {}: {}", doing, path, std::generic_category().message(error));
}

absl::StatusOr<Directory> OpenDirectory(const std::string& path) {
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) return ErrnoStatus(errno, "open the directory", path);
  return Directory{std::move(fd), path};
}

absl::StatusOr<Directory> MakeDirectoriesBeneath(const std::string& root, std::string_view relative, mode_t mode) {
  TP_ASSIGN_OR_RETURN(Directory directory, OpenDirectory(root));
  while (!relative.empty()) {
    const size_t slash = relative.find('/');
    const std::string name(relative.substr(0, slash));
    relative = slash == std::string_view::npos ? std::string_view() : relative.substr(slash + 1);
    if (name.empty()) continue;
    if (name == "." || name == ".." || name.find('\0') != std::string::npos) {
      return InvalidArgument("{}/{}: not a name for a directory", directory.path, name);
    }
    TP_RETURN_IF_ERROR(MakeDirectory(directory.fd.get(), name, mode, directory.At(name)));
    TP_ASSIGN_OR_RETURN(directory, EnterDirectory(directory, name));
  }
  return directory;
}

namespace {

struct OpenedFile {
  UniqueFd fd;
  off_t size = 0;
};

// Nothing where the file does not exist. Non-blocking, so that a FIFO under the name does not hold the caller up.
absl::StatusOr<std::optional<OpenedFile>> OpenRegularFile(const Directory& directory, const std::string& name) {
  const std::string path = directory.At(name);
  UniqueFd fd(openat(directory.fd.get(), name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!fd.valid()) {
    if (errno == ENOENT) return std::nullopt;
    return ErrnoStatus(errno, "open", path);
  }
  struct stat about {};
  if (fstat(fd.get(), &about) != 0) return ErrnoStatus(errno, "look at", path);
  if (!S_ISREG(about.st_mode)) return FailedPrecondition("{} is not a regular file", path);
  return OpenedFile{std::move(fd), about.st_size};
}

}  // namespace

absl::StatusOr<std::optional<std::string>> ReadFileEnd(const Directory& directory, const std::string& name,
                                                       size_t max_bytes) {
  TP_ASSIGN_OR_RETURN(const std::optional<OpenedFile> file, OpenRegularFile(directory, name));
  if (!file) return std::nullopt;
  std::string bytes(std::min(static_cast<size_t>(file->size), max_bytes), '\0');
  const off_t from = file->size - static_cast<off_t>(bytes.size());
  size_t size = 0;
  while (size < bytes.size()) {
    const ssize_t got =
        pread(file->fd.get(), bytes.data() + size, bytes.size() - size, from + static_cast<off_t>(size));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ErrnoStatus(errno, "read", directory.At(name));
    if (got == 0) break;  // cut meanwhile
    size += static_cast<size_t>(got);
  }
  bytes.resize(size);
  return bytes;
}

absl::StatusOr<std::optional<std::string>> ReadSmallFile(const Directory& directory, const std::string& name,
                                                         size_t max_bytes) {
  const std::string path = directory.At(name);
  TP_ASSIGN_OR_RETURN(const std::optional<OpenedFile> file, OpenRegularFile(directory, name));
  if (!file) return std::nullopt;
  // As much as it says it has, and one more: whether it is at its end shows only beyond. Files of /proc say 0.
  const auto expected = static_cast<size_t>(std::max<off_t>(file->size, kFirstRead));
  std::string bytes(std::min(expected, max_bytes) + 1, '\0');
  size_t size = 0;
  for (;;) {
    if (size == bytes.size()) {
      if (size > max_bytes) break;
      bytes.resize(std::min(2 * size, max_bytes + 1));
    }
    const ssize_t got = read(file->fd.get(), bytes.data() + size, bytes.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ErrnoStatus(errno, "read", path);
    if (got == 0) break;
    size += static_cast<size_t>(got);
  }
  if (size > max_bytes) return FailedPrecondition("{} is longer than {} bytes", path, max_bytes);
  bytes.resize(size);
  return bytes;
}

absl::Status WriteAll(int fd, std::string_view bytes, std::string_view path) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return ErrnoStatus(errno, "write", path);
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

absl::Status SyncDirectory(const Directory& directory) {
  return fsync(directory.fd.get()) == 0 ? absl::OkStatus() : ErrnoStatus(errno, "fsync", directory.path);
}

absl::Status ReplaceFile(const Directory& directory, const std::string& name, std::string_view bytes, mode_t mode,
                         Sync sync) {
  TP_ASSIGN_OR_RETURN(const std::string temporary, WriteTemporary(directory, bytes, mode, sync));
  if (renameat(directory.fd.get(), temporary.c_str(), directory.fd.get(), name.c_str()) != 0) {
    const int error = errno;
    unlinkat(directory.fd.get(), temporary.c_str(), 0);
    return ErrnoStatus(error, "rename to", directory.At(name));
  }
  return sync == Sync::kDurable ? SyncDirectory(directory) : absl::OkStatus();
}

absl::StatusOr<bool> LinkNewFile(const Directory& directory, const std::string& name, std::string_view bytes,
                                 mode_t mode, Sync sync) {
  TP_ASSIGN_OR_RETURN(const std::string temporary, WriteTemporary(directory, bytes, mode, sync));
  const int error = linkat(directory.fd.get(), temporary.c_str(), directory.fd.get(), name.c_str(), 0) == 0 ? 0 : errno;
  unlinkat(directory.fd.get(), temporary.c_str(), 0);
  if (error != 0 && error != EEXIST) return ErrnoStatus(error, "link", directory.At(name));
  if (sync == Sync::kDurable) TP_RETURN_IF_ERROR(SyncDirectory(directory));
  return error == 0;
}

absl::Status RemoveTree(const Directory& directory, const std::string& name) {
  if (unlinkat(directory.fd.get(), name.c_str(), 0) == 0 || errno == ENOENT) return absl::OkStatus();
  if (errno != EISDIR && errno != EPERM) return ErrnoStatus(errno, "remove", directory.At(name));
  TP_ASSIGN_OR_RETURN(const Directory inner, EnterDirectory(directory, name));
  TP_RETURN_IF_ERROR(RemoveEntries(inner));
  if (unlinkat(directory.fd.get(), name.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT) return absl::OkStatus();
  return ErrnoStatus(errno, "remove", directory.At(name));
}

std::string RandomName() {
  std::array<uint8_t, 16> bytes{};
  size_t size = 0;
  while (size < bytes.size()) {
    const ssize_t got = getrandom(bytes.data() + size, bytes.size() - size, 0);
    if (got > 0) size += static_cast<size_t>(got);
  }
  std::string name;
  for (const uint8_t byte : bytes) name += fmt::format("{:02x}", byte);
  return name;
}

absl::StatusOr<bool> TakeLock(int fd, std::string_view path) {
  const absl::Time patience = absl::Now() + kLockPatience;
  while (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return ErrnoStatus(errno, "lock", path);
    if (absl::Now() > patience) return false;
    absl::SleepFor(absl::Milliseconds(10));
  }
  return true;
}

}  // namespace tp
