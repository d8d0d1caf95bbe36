#include "api/job_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <utility>

#include "base/printable.h"
#include "base/status.h"

namespace tp::api {
namespace {

constexpr int kMaxDepth = 64;

absl::Status OpenError(int error, std::string_view path) {
  if (error == ELOOP || error == ENOTDIR || error == ENXIO) {
    return FailedPrecondition("{} is a link or no ordinary file, which is not followed", Quoted(path));
  }
  return ErrnoStatus(error, "open", path);
}

absl::StatusOr<Directory> Enter(const Directory& parent, const std::string& name) {
  std::string path = parent.At(name);
  UniqueFd fd(openat(parent.fd.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd.valid()) return OpenError(errno, path);
  return Directory{std::move(fd), std::move(path)};
}

absl::Status CheckPart(std::string_view part, std::string_view path) {
  if (!part.empty() && part != "." && part != ".." && part.find('\0') == std::string_view::npos)
    return absl::OkStatus();
  return InvalidArgument("{} is not a path below the run: no empty part, '.' or '..'", Quoted(path));
}

// Takes the first part off `rest`.
std::string TakePart(std::string_view& rest) {
  const size_t slash = rest.find('/');
  std::string part(rest.substr(0, slash));
  rest = slash == std::string_view::npos ? std::string_view() : rest.substr(slash + 1);
  return part;
}

absl::StatusOr<Directory> Descend(Directory directory, std::string_view relative) {
  const std::string_view whole = relative;
  if (relative.ends_with('/')) return CheckPart("", whole);
  while (!relative.empty()) {
    const std::string part = TakePart(relative);
    TP_RETURN_IF_ERROR(CheckPart(part, whole));
    TP_ASSIGN_OR_RETURN(directory, Enter(directory, part));
  }
  return directory;
}

absl::Time ModifiedAt(const struct stat& info) { return absl::TimeFromTimespec(info.st_mtim); }

class Walk {
 public:
  explicit Walk(size_t max_entries) : max_entries_(max_entries) {}

  absl::Status Visit(const Directory& directory, const std::string& prefix, int depth) {
    if (depth > kMaxDepth) return TooMany(directory.path);
    TP_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListNames(directory));
    for (const std::string& name : names) {
      if (++seen_ > max_entries_) return TooMany(directory.path);
      struct stat info {};
      if (fstatat(directory.fd.get(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) continue;  // gone meanwhile
      if (S_ISREG(info.st_mode)) {
        files_.push_back({.path = prefix + name, .bytes = info.st_size, .modified_at = ModifiedAt(info)});
      } else if (S_ISDIR(info.st_mode)) {
        const auto child = Enter(directory, name);
        if (child.ok()) TP_RETURN_IF_ERROR(Visit(*child, prefix + name + "/", depth + 1));
      }
    }
    return absl::OkStatus();
  }

  std::vector<FileEntry> TakeSorted() {
    std::sort(files_.begin(), files_.end(), [](const FileEntry& a, const FileEntry& b) { return a.path < b.path; });
    return std::move(files_);
  }

 private:
  absl::Status TooMany(std::string_view where) const {
    return Error(absl::StatusCode::kResourceExhausted, "more than {} entries or {} levels below {}: pack them",
                 max_entries_, kMaxDepth, where);
  }

  const size_t max_entries_;
  size_t seen_ = 0;
  std::vector<FileEntry> files_;
};

}  // namespace

absl::StatusOr<Directory> OpenDirectoryBeneath(const std::string& root, std::string_view relative) {
  TP_ASSIGN_OR_RETURN(Directory directory, OpenDirectory(root));
  return Descend(std::move(directory), relative);
}

absl::StatusOr<UniqueFd> OpenRegularFile(const Directory& directory, const std::string& name) {
  const std::string path = directory.At(name);
  // O_NONBLOCK: opening a pipe without a writer would wait for one.
  UniqueFd fd(openat(directory.fd.get(), name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
  if (!fd.valid()) return OpenError(errno, path);
  struct stat info {};
  if (fstat(fd.get(), &info) != 0) return ErrnoStatus(errno, "look at", path);
  if (!S_ISREG(info.st_mode)) return OpenError(ENXIO, path);
  return fd;
}

absl::StatusOr<UniqueFd> OpenFileBeneath(const Directory& directory, std::string_view path) {
  const size_t slash = path.rfind('/');
  const std::string name(slash == std::string_view::npos ? path : path.substr(slash + 1));
  TP_RETURN_IF_ERROR(CheckPart(name, path));
  if (slash == std::string_view::npos) return OpenRegularFile(directory, name);
  if (slash == 0) return CheckPart("", path);
  Directory here{UniqueFd(fcntl(directory.fd.get(), F_DUPFD_CLOEXEC, 0)), directory.path};
  if (!here.fd.valid()) return ErrnoStatus(errno, "open", directory.path);
  TP_ASSIGN_OR_RETURN(const Directory parent, Descend(std::move(here), path.substr(0, slash)));
  return OpenRegularFile(parent, name);
}

absl::StatusOr<std::vector<FileEntry>> ListFilesBeneath(const Directory& directory, size_t max_entries) {
  Walk walk(max_entries);
  TP_RETURN_IF_ERROR(walk.Visit(directory, "", 0));
  return walk.TakeSorted();
}

absl::StatusOr<std::vector<std::string>> ListNames(const Directory& directory) {
  // Opened anew: a duplicate would share its position with the original.
  UniqueFd fd(openat(directory.fd.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) return ErrnoStatus(errno, "list", directory.path);
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(fdopendir(fd.get()), closedir);
  if (!stream) return ErrnoStatus(errno, "list", directory.path);
  fd.release();
  std::vector<std::string> names;
  for (;;) {
    errno = 0;
    const dirent* entry = readdir(stream.get());
    if (entry == nullptr) break;
    std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(std::move(name));
  }
  if (errno != 0) return ErrnoStatus(errno, "list", directory.path);
  return names;
}

absl::StatusOr<std::string> ReadAt(int fd, int64_t offset, size_t max_bytes, std::string_view path) {
  std::string bytes(max_bytes, '\0');
  for (;;) {
    const ssize_t got = pread(fd, bytes.data(), bytes.size(), offset);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ErrnoStatus(errno, "read", path);
    bytes.resize(static_cast<size_t>(got));
    return bytes;
  }
}

absl::StatusOr<int64_t> SizeOf(int fd, std::string_view path) {
  struct stat info {};
  if (fstat(fd, &info) != 0) return ErrnoStatus(errno, "look at", path);
  return info.st_size;
}

}  // namespace tp::api
