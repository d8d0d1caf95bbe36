#include "auth/secret_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "auth/digest.h"
#include "base/status.h"

namespace tp::auth {
namespace {

constexpr size_t kMaxSecretBytes = 4096;

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

absl::Status FileError(std::string_view what, const std::string& path) {
  const int error = errno;
  const auto code = error == ENOENT ? absl::StatusCode::kNotFound : absl::StatusCode::kFailedPrecondition;
  return Error(code, "could not {} {}: {}", what, path, std::strerror(error));
}

absl::Status CheckPrivate(int fd, const std::string& path) {
  struct stat info {};
  if (fstat(fd, &info) != 0) return FileError("look at", path);
  if (!S_ISREG(info.st_mode)) return FailedPrecondition("{} is not a regular file: move it away", path);
  if (info.st_uid != geteuid()) {
    return FailedPrecondition("{} belongs to uid {}, not to {}: chown or move it", path, info.st_uid, geteuid());
  }
  if ((info.st_mode & 077) != 0) return FailedPrecondition("{} can be read by others: chmod 600 {}", path, path);
  return absl::OkStatus();
}

absl::Status WriteAll(int fd, std::string_view content, const std::string& path) {
  while (!content.empty()) {
    const ssize_t written = write(fd, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return FileError("write", path);
    content.remove_prefix(static_cast<size_t>(written));
  }
  return fsync(fd) == 0 ? absl::OkStatus() : FileError("sync", path);
}

absl::Status SyncDirectoryOf(const std::string& path) {
  const std::string directory = std::filesystem::path(path).parent_path().string();
  const Descriptor fd(open(directory.empty() ? "." : directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.get() < 0 || fsync(fd.get()) != 0) return FileError("sync the directory of", path);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> ReadSecretFile(const std::string& path) {
  const Descriptor fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (fd.get() < 0) return FileError("read", path);
  TP_RETURN_IF_ERROR(CheckPrivate(fd.get(), path));
  std::array<char, kMaxSecretBytes> buffer{};
  const ssize_t got = read(fd.get(), buffer.data(), buffer.size());
  if (got < 0) return FileError("read", path);
  std::string content(buffer.data(), static_cast<size_t>(got));
  if (!content.empty() && content.back() == '\n') content.pop_back();
  return content;
}

absl::Status WriteSecretFile(const std::string& path, std::string_view content) {
  const std::string temporary = fmt::format("{}.{}.tmp", path, Hex(RandomBytes(8)));
  const Descriptor fd(open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (fd.get() < 0) return FileError("create", temporary);
  absl::Status status = WriteAll(fd.get(), content, temporary);
  if (status.ok() && rename(temporary.c_str(), path.c_str()) != 0) status = FileError("rename", temporary);
  if (!status.ok()) {
    unlink(temporary.c_str());
    return status;
  }
  return SyncDirectoryOf(path);
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
