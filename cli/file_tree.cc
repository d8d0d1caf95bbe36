#include "cli/file_tree.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/printable.h"
#include "base/status.h"

namespace tp::cli {
namespace {

const std::vector<std::string_view> kDefaultExcludes = {".git",  "__pycache__",  "venv",
                                                        ".venv", "node_modules", "*.pyc"};
constexpr size_t kMaxIgnoreFileBytes = size_t{1} << 20;

using Stream = std::unique_ptr<DIR, decltype([](DIR* directory) { ::closedir(directory); })>;

absl::Status PathError(std::string_view path, int error) {
  return InvalidArgument("{}: {}; a snapshot needs every file to be readable, or left out by .tpignore", Quoted(path),
                         std::strerror(error));
}

// Of a directory's member, as far as its listing tells.
struct Name {
  std::string name;
  unsigned char type = DT_UNKNOWN;
};

class Scanner {
 public:
  explicit Scanner(FileTree& tree) : tree_(tree), rules_(kDefaultExcludes) {}

  // `prefix` is empty or ends in `/`.
  absl::Status ScanDirectory(int parent_fd, const std::string& name, const std::string& prefix) {
    Directory directory;
    directory.path = prefix.empty() ? "." : prefix;
    directory.fd.reset(::openat(parent_fd, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!directory.fd.valid()) return PathError(directory.path, errno);
    TP_ASSIGN_OR_RETURN(const std::vector<Name> names, SortedNames(directory));
    TP_ASSIGN_OR_RETURN(const std::string rules, ReadRules(directory, names));
    rules_.Enter(prefix, rules);
    for (const Name& child : names) TP_RETURN_IF_ERROR(ScanName(directory.fd.get(), child, prefix + child.name));
    rules_.Leave();
    return absl::OkStatus();
  }

 private:
  static absl::StatusOr<std::vector<Name>> SortedNames(const Directory& directory) {
    const Stream stream(::fdopendir(::fcntl(directory.fd.get(), F_DUPFD_CLOEXEC, 0)));
    if (!stream) return PathError(directory.path, errno);
    std::vector<Name> names;
    errno = 0;
    while (const dirent* entry = ::readdir(stream.get())) {
      const std::string_view name = entry->d_name;
      if (name != "." && name != "..") names.push_back({std::string(name), entry->d_type});
      errno = 0;
    }
    if (errno != 0) return PathError(directory.path, errno);
    std::sort(names.begin(), names.end(), [](const Name& a, const Name& b) { return a.name < b.name; });
    return names;
  }

  // As git does, only from a regular file.
  static absl::StatusOr<std::string> ReadRules(const Directory& directory, const std::vector<Name>& names) {
    const auto is_ignore_file = [](const Name& name) { return name.name == kIgnoreFile && name.type != DT_LNK; };
    if (std::none_of(names.begin(), names.end(), is_ignore_file)) return std::string();
    TP_ASSIGN_OR_RETURN(auto text, ReadSmallFile(directory, std::string(kIgnoreFile), kMaxIgnoreFileBytes));
    return std::move(text).value_or("");
  }

  // What is left out is not looked at.
  absl::Status ScanName(int parent_fd, const Name& name, const std::string& path) {
    struct stat about {};
    bool known = false;
    if (name.type == DT_UNKNOWN) {
      TP_RETURN_IF_ERROR(Stat(parent_fd, name.name, path, &about));
      known = true;
    }
    const bool is_directory = known ? S_ISDIR(about.st_mode) : name.type == DT_DIR;
    if (auto rule = rules_.LeftOutBy(path, is_directory)) {
      tree_.left_out.push_back({is_directory ? path + "/" : path, *std::move(rule)});
      return absl::OkStatus();
    }
    if (!known) TP_RETURN_IF_ERROR(Stat(parent_fd, name.name, path, &about));
    return AddEntry(parent_fd, name.name, path, about);
  }

  absl::Status Stat(int parent_fd, const std::string& name, const std::string& path, struct stat* about) {
    ++tree_.stats;
    return ::fstatat(parent_fd, name.c_str(), about, AT_SYMLINK_NOFOLLOW) == 0 ? absl::OkStatus()
                                                                               : PathError(path, errno);
  }

  absl::Status AddEntry(int parent_fd, const std::string& name, const std::string& path, const struct stat& about) {
    snapshot::Entry entry;
    entry.path = path;
    if (S_ISREG(about.st_mode)) {
      entry.executable = (about.st_mode & S_IXUSR) != 0;
      entry.bytes = about.st_size;
      ++tree_.files;
      tree_.bytes += about.st_size;
    } else if (S_ISLNK(about.st_mode)) {
      entry.kind = snapshot::EntryKind::kSymlink;
      TP_ASSIGN_OR_RETURN(entry.link_target, ReadLink(parent_fd, name, path));
    } else if (S_ISDIR(about.st_mode)) {
      entry.kind = snapshot::EntryKind::kDirectory;
    } else {
      return InvalidArgument(
          "{}: a device, socket or pipe cannot be part of a snapshot; remove it or list it in .tpignore", Quoted(path));
    }
    tree_.entries.push_back(std::move(entry));
    tree_.stamps.push_back(StampOf(about));
    return S_ISDIR(about.st_mode) ? ScanDirectory(parent_fd, name, path + "/") : absl::OkStatus();
  }

  static absl::StatusOr<std::string> ReadLink(int parent_fd, const std::string& name, const std::string& path) {
    std::array<char, PATH_MAX> target{};
    const ssize_t length = ::readlinkat(parent_fd, name.c_str(), target.data(), target.size());
    if (length < 0) return PathError(path, errno);
    return std::string(target.data(), static_cast<size_t>(length));
  }

  FileTree& tree_;
  IgnoreRules rules_;
};

}  // namespace

absl::StatusOr<std::string> ResolveDirectory(const std::string& directory) {
  const std::unique_ptr<char, decltype([](char* text) { std::free(text); })> real(
      ::realpath(directory.c_str(), nullptr));
  if (!real) return InvalidArgument("{}: {}; --dir names the directory to submit", directory, std::strerror(errno));
  return std::string(real.get());
}

absl::StatusOr<FileTree> ScanTree(const std::string& directory) {
  FileTree tree;
  tree.path = directory;
  tree.root.reset(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!tree.root.valid()) return PathError(directory, errno);
  TP_RETURN_IF_ERROR(Scanner(tree).ScanDirectory(tree.root.get(), ".", ""));
  return tree;
}

}  // namespace tp::cli
