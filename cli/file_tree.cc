#include "cli/file_tree.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <memory>

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/status.h"

namespace tp::cli {
namespace {

constexpr std::array<std::string_view, 5> kExcludedNames = {".git", "__pycache__", "venv", ".venv", "node_modules"};
constexpr std::string_view kExcludedSuffix = ".pyc";
constexpr size_t kLargestNamed = 5;

using Directory = std::unique_ptr<DIR, decltype([](DIR* directory) { ::closedir(directory); })>;

bool IsExcluded(std::string_view name) {
  if (std::find(kExcludedNames.begin(), kExcludedNames.end(), name) != kExcludedNames.end()) return true;
  return name.size() > kExcludedSuffix.size() && name.substr(name.size() - kExcludedSuffix.size()) == kExcludedSuffix;
}

absl::Status PathError(std::string_view path, int error) {
  return InvalidArgument("{}: {}; a snapshot needs every file to be readable", path, std::strerror(error));
}

class Scanner {
 public:
  Scanner(FileTree& tree, std::string real_root) : tree_(tree), real_root_(std::move(real_root)) {}

  // `prefix` is empty or ends in `/`.
  absl::Status ScanDirectory(int parent_fd, const std::string& name, const std::string& prefix) {
    UniqueFd fd(::openat(parent_fd, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!fd.valid()) return PathError(prefix.empty() ? name : prefix, errno);
    TP_ASSIGN_OR_RETURN(const std::vector<std::string> names, SortedNames(fd.get(), prefix));
    for (const std::string& child : names) TP_RETURN_IF_ERROR(ScanEntry(fd.get(), child, prefix + child));
    return absl::OkStatus();
  }

 private:
  static absl::StatusOr<std::vector<std::string>> SortedNames(int fd, const std::string& prefix) {
    const Directory directory(::fdopendir(::fcntl(fd, F_DUPFD_CLOEXEC, 0)));
    if (!directory) return PathError(prefix, errno);
    std::vector<std::string> names;
    errno = 0;
    while (const dirent* entry = ::readdir(directory.get())) {
      const std::string_view name = entry->d_name;
      if (name != "." && name != ".." && !IsExcluded(name)) names.emplace_back(name);
      errno = 0;
    }
    if (errno != 0) return PathError(prefix, errno);
    std::sort(names.begin(), names.end());
    return names;
  }

  absl::Status ScanEntry(int parent_fd, const std::string& name, const std::string& path) {
    struct stat info {};
    if (::fstatat(parent_fd, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) return PathError(path, errno);
    if (S_ISREG(info.st_mode)) return AddFile(path, info);
    if (S_ISLNK(info.st_mode)) return AddLink(parent_fd, name, path);
    if (S_ISDIR(info.st_mode)) {
      tree_.entries.push_back({path, EntryKind::kDirectory, true, 0, ""});
      return ScanDirectory(parent_fd, name, path + "/");
    }
    return InvalidArgument(
        "{}: a device, socket or pipe cannot be part of a snapshot; remove it or submit from another directory", path);
  }

  absl::Status AddFile(const std::string& path, const struct stat& info) {
    tree_.entries.push_back({path, EntryKind::kFile, (info.st_mode & S_IXUSR) != 0, info.st_size, ""});
    ++tree_.files;
    tree_.bytes += info.st_size;
    return absl::OkStatus();
  }

  absl::Status AddLink(int parent_fd, const std::string& name, const std::string& path) {
    std::array<char, PATH_MAX> target{};
    const ssize_t length = ::readlinkat(parent_fd, name.c_str(), target.data(), target.size());
    if (length < 0) return PathError(path, errno);
    std::string text(target.data(), static_cast<size_t>(length));
    if (!StaysInside(path, text) || LeadsOutside(path)) {
      return InvalidArgument("{} -> {}: the link leaves the directory; copy what it points to, or remove it", path,
                             text);
    }
    tree_.entries.push_back({path, EntryKind::kSymlink, false, 0, std::move(text)});
    return absl::OkStatus();
  }

  // Through the links on the way, which names alone do not show. A link to nothing leads nowhere.
  bool LeadsOutside(const std::string& path) const {
    const std::unique_ptr<char, decltype([](char* text) { std::free(text); })> real(
        ::realpath((real_root_ + "/" + path).c_str(), nullptr));
    if (!real) return false;
    const std::string_view resolved = real.get();
    return resolved != real_root_ && resolved.substr(0, real_root_.size() + 1) != real_root_ + "/";
  }

  FileTree& tree_;
  const std::string real_root_;
};

absl::Status TooLarge(const FileTree& tree, int64_t max_bytes) {
  std::vector<const TreeEntry*> largest;
  for (const TreeEntry& entry : tree.entries) {
    if (entry.kind == EntryKind::kFile) largest.push_back(&entry);
  }
  const size_t named = std::min(kLargestNamed, largest.size());
  std::partial_sort(largest.begin(), largest.begin() + static_cast<std::ptrdiff_t>(named), largest.end(),
                    [](const TreeEntry* a, const TreeEntry* b) { return a->bytes > b->bytes; });
  std::string list;
  for (size_t i = 0; i < named; ++i) {
    list += fmt::format("{}{} ({})", i == 0 ? "" : ", ", largest[i]->path, HumanBytes(largest[i]->bytes));
  }
  return InvalidArgument(
      "the directory holds {}, a snapshot at most {}; the largest files: {}. Move them out, or submit from "
      "a directory of the code alone (--dir)",
      HumanBytes(tree.bytes), HumanBytes(max_bytes), list);
}

}  // namespace

bool StaysInside(std::string_view link_path, std::string_view target) {
  if (target.empty() || target.front() == '/') return false;
  auto depth = std::count(link_path.begin(), link_path.end(), '/');
  while (!target.empty()) {
    const size_t slash = target.find('/');
    const std::string_view part = target.substr(0, slash);
    target = slash == std::string_view::npos ? std::string_view() : target.substr(slash + 1);
    if (part == "..") --depth;
    if (depth < 0) return false;
    if (!part.empty() && part != "." && part != "..") ++depth;
  }
  return true;
}

std::string HumanBytes(int64_t bytes) {
  constexpr std::array<std::string_view, 5> kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  if (bytes < 1024) return fmt::format("{} B", bytes);
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{:.1f} {}", value, kUnits[unit]);
}

absl::StatusOr<FileTree> ScanTree(const std::string& directory, int64_t max_bytes) {
  const std::unique_ptr<char, decltype([](char* text) { std::free(text); })> real(
      ::realpath(directory.c_str(), nullptr));
  if (!real) return InvalidArgument("{}: {}; --dir names the directory to submit", directory, std::strerror(errno));
  FileTree tree;
  tree.root = UniqueFd(::open(real.get(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!tree.root.valid()) return PathError(directory, errno);
  TP_RETURN_IF_ERROR(Scanner(tree, real.get()).ScanDirectory(tree.root.get(), ".", ""));
  if (tree.bytes > max_bytes) return TooLarge(tree, max_bytes);
  return tree;
}

}  // namespace tp::cli
