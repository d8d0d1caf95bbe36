#include "backends/node/copied/trees.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "backends/node/copied/copier.h"
#include "base/status.h"
#include "base/walk_tree.h"

namespace tp::node {
namespace {

constexpr mode_t kTreeMode = 02770;
constexpr size_t kCompareBytes = 1 << 20;

struct Found {
  std::string folder;  // relative, with a slash at its end or empty
  std::string name;
  mode_t mode = 0;
  int64_t bytes = 0;

  std::string path() const { return folder + name; }
};

struct SplitPath {
  std::string parent;
  std::string name;
};
SplitPath Split(const std::string& path) {
  const size_t slash = path.rfind('/');
  return {path.substr(0, slash), path.substr(slash + 1)};
}

// Everything beneath, folders before what is in them; nothing where there is no such directory.
absl::StatusOr<std::vector<Found>> ListTree(const std::string& path, const std::function<bool()>& stopped) {
  const auto [parent, name] = Split(path);
  std::vector<Found> all;
  const absl::StatusOr<Directory> directory = OpenDirectory(parent);
  if (absl::IsNotFound(directory.status())) return all;
  TP_RETURN_IF_ERROR(directory.status());
  const auto visit = [&all](const WalkedEntry& entry) {
    if (!entry.name.empty()) {
      all.push_back({entry.folder, entry.name, entry.about.st_mode, static_cast<int64_t>(entry.about.st_size)});
    }
  };
  TP_RETURN_IF_ERROR(WalkTree(*directory, name, visit, stopped));
  std::stable_sort(all.begin(), all.end(), [](const Found& a, const Found& b) { return a.folder < b.folder; });
  return all;
}

// `folder` as MakeDirectoriesBeneath takes it.
absl::StatusOr<Directory> FolderIn(const std::string& root, std::string folder) {
  if (folder.empty()) return OpenDirectory(root);
  folder.pop_back();
  return MakeDirectoriesBeneath(root, folder, kTreeMode);
}

absl::StatusOr<std::string> LinkText(int directory, const std::string& name, const std::string& path) {
  std::array<char, PATH_MAX + 64> text{};
  const ssize_t length = readlinkat(directory, name.c_str(), text.data(), text.size());
  if (length < 0) return ErrnoStatus(errno, "read the link", path);
  return std::string(text.data(), static_cast<size_t>(length));
}

bool IsOfRanks(const Found& found) {
  return found.folder.empty() ? found.name.starts_with(kOfRank) : found.folder.starts_with(kOfRank);
}

absl::Status LinkOne(const Directory& source, const Directory& target, const Found& found) {
  const int from = source.fd.get();
  const int to = target.fd.get();
  if (S_ISREG(found.mode)) {
    if (linkat(from, found.name.c_str(), to, found.name.c_str(), 0) == 0 || errno == ENOENT) return absl::OkStatus();
    return ErrnoStatus(errno, "link", source.At(found.name));
  }
  if (!S_ISLNK(found.mode)) return absl::OkStatus();
  TP_ASSIGN_OR_RETURN(const std::string text, LinkText(from, found.name, source.At(found.name)));
  if (symlinkat(text.c_str(), to, found.name.c_str()) == 0) return absl::OkStatus();
  return ErrnoStatus(errno, "make the link", target.At(found.name));
}

// A file or link by its name in a tree, looked at without following anything; nothing where it, or a folder above it,
// is not there or is something else.
struct Place {
  UniqueFd folder;
  struct stat about {};
};
std::optional<Place> Find(const std::string& root, const Found& found) {
  Place place;
  place.folder = UniqueFd(open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  std::string_view rest = found.folder;
  while (place.folder.valid() && !rest.empty()) {
    const std::string part(rest.substr(0, rest.find('/')));
    rest.remove_prefix(part.size() + 1);
    place.folder = UniqueFd(openat(place.folder.get(), part.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  }
  if (!place.folder.valid()) return std::nullopt;
  if (fstatat(place.folder.get(), found.name.c_str(), &place.about, AT_SYMLINK_NOFOLLOW) != 0) return std::nullopt;
  return place;
}

absl::StatusOr<bool> SameBytes(const Place& a, const Place& b, const std::string& name) {
  if (a.about.st_size != b.about.st_size) return false;
  const UniqueFd left(openat(a.folder.get(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  const UniqueFd right(openat(b.folder.get(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  if (!left.valid() || !right.valid()) return false;
  std::vector<char> left_bytes(kCompareBytes);
  std::vector<char> right_bytes(kCompareBytes);
  for (off_t at = 0; at < a.about.st_size; at += static_cast<off_t>(kCompareBytes)) {
    const ssize_t got = pread(left.get(), left_bytes.data(), kCompareBytes, at);
    if (got < 0) return ErrnoStatus(errno, "read", name);
    if (pread(right.get(), right_bytes.data(), kCompareBytes, at) != got) return false;
    if (!std::equal(left_bytes.begin(), left_bytes.begin() + got, right_bytes.begin())) return false;
  }
  return true;
}

// `UsableLink` undoes nothing in a text that is usable already.
absl::StatusOr<bool> SameContent(const Place& a, const Place& b, const std::string& name) {
  if ((a.about.st_mode & S_IFMT) != (b.about.st_mode & S_IFMT)) return false;
  if (S_ISREG(a.about.st_mode)) return SameBytes(a, b, name);
  if (!S_ISLNK(a.about.st_mode)) return false;
  TP_ASSIGN_OR_RETURN(const std::string left, LinkText(a.folder.get(), name, name));
  TP_ASSIGN_OR_RETURN(const std::string right, LinkText(b.folder.get(), name, name));
  return UsableLink(left) == UsableLink(right);
}

class Merge {
 public:
  Merge(const MergePlan& plan, const std::function<bool()>& stopped) : plan_(plan), stopped_(stopped) {}

  absl::Status Run() {
    TP_ASSIGN_OR_RETURN(const std::vector<Found> changed, ListTree(plan_.from, stopped_));
    for (const Found& found : changed) {
      if (stopped_()) return Error(absl::StatusCode::kCancelled, "the files of a rank are no longer moved");
      if (IsOfRanks(found)) continue;
      TP_RETURN_IF_ERROR(S_ISDIR(found.mode) ? TakeFolder(found) : TakeFile(found));
    }
    return absl::OkStatus();
  }

 private:
  absl::Status TakeFolder(const Found& found) {
    const absl::Status made = FolderIn(plan_.into, found.path() + "/").status();
    if (made.ok() || !plan_.first) return absl::OkStatus();  // what is in the way wins over another rank's
    return MakeRoomFor(plan_.into, found.path() + "/").status();
  }

  absl::Status TakeFile(const Found& found) {
    if (!S_ISREG(found.mode) && !S_ISLNK(found.mode)) return absl::OkStatus();
    if (plan_.first) return MoveInto(plan_.into, found);
    const std::string own = plan_.into + "/" + plan_.of_rank;
    const std::optional<Place> mine = Find(plan_.from, found);
    if (!mine) return absl::OkStatus();
    const std::optional<Place> kept = Find(own, found);
    TP_ASSIGN_OR_RETURN(const bool untouched, IsUntouched(found));
    if (!kept && untouched) return MoveInto(plan_.into, found);
    const std::optional<Place> theirs = Find(plan_.into, found);
    for (const std::optional<Place>* other : {&kept, &theirs}) {
      if (!*other) continue;
      TP_ASSIGN_OR_RETURN(const bool same, SameContent(*mine, **other, found.name));
      if (same) return absl::OkStatus();
    }
    TP_RETURN_IF_ERROR(FolderIn(plan_.into, plan_.of_rank + "/").status());
    return MoveInto(own, found);
  }

  // Whether nobody has changed it since this rank got its copy, so that it is this rank's to change.
  absl::StatusOr<bool> IsUntouched(const Found& found) const {
    const std::optional<Place> now = Find(plan_.into, found);
    const std::optional<Place> then = Find(plan_.base, found);
    if (!now && !then) return FolderIn(plan_.into, found.folder).ok();
    if (!now || !then) return false;
    if (S_ISREG(now->about.st_mode)) return now->about.st_ino == then->about.st_ino;
    return SameContent(*now, *then, found.name);
  }

  absl::Status MoveInto(const std::string& root, const Found& found) {
    TP_ASSIGN_OR_RETURN(const Directory target, MakeRoomFor(root, found.folder));
    const std::optional<Place> mine = Find(plan_.from, found);
    if (!mine) return absl::OkStatus();
    struct stat there {};
    const bool in_the_way =
        fstatat(target.fd.get(), found.name.c_str(), &there, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(there.st_mode);
    if (in_the_way) TP_RETURN_IF_ERROR(PutAside(target, found.name));
    if (S_ISREG(found.mode)) {
      const int moved = renameat(mine->folder.get(), found.name.c_str(), target.fd.get(), found.name.c_str());
      return moved == 0 ? absl::OkStatus() : ErrnoStatus(errno, "rename to", target.At(found.name));
    }
    TP_ASSIGN_OR_RETURN(const std::string text, LinkText(mine->folder.get(), found.name, target.At(found.name)));
    const std::string temporary = ".link." + RandomName();
    if (symlinkat(UsableLink(text).c_str(), target.fd.get(), temporary.c_str()) != 0 ||
        renameat(target.fd.get(), temporary.c_str(), target.fd.get(), found.name.c_str()) != 0) {
      return ErrnoStatus(errno, "make the link", target.At(found.name));
    }
    return absl::OkStatus();
  }

  // The folder, where something else has the name of a part of it: that keeps its content under another name.
  absl::StatusOr<Directory> MakeRoomFor(const std::string& root, const std::string& folder) {
    absl::StatusOr<Directory> made = FolderIn(root, folder);
    if (made.ok()) return made;
    std::string done;
    for (std::string_view rest = folder; !rest.empty();) {
      const std::string part(rest.substr(0, rest.find('/')));
      rest.remove_prefix(part.size() + 1);
      TP_ASSIGN_OR_RETURN(const Directory above, FolderIn(root, done));
      struct stat about {};
      const bool there = fstatat(above.fd.get(), part.c_str(), &about, AT_SYMLINK_NOFOLLOW) == 0;
      if (there && !S_ISDIR(about.st_mode)) TP_RETURN_IF_ERROR(PutAside(above, part));
      done += part + "/";
    }
    return FolderIn(root, folder);
  }

  static absl::Status PutAside(const Directory& directory, const std::string& name) {
    const std::string aside = fmt::format("{}.tp-replaced-{}", name.substr(0, 200), RandomName().substr(0, 8));
    if (renameat(directory.fd.get(), name.c_str(), directory.fd.get(), aside.c_str()) == 0) return absl::OkStatus();
    return ErrnoStatus(errno, "rename", directory.At(name));
  }

  const MergePlan& plan_;
  const std::function<bool()>& stopped_;
};

}  // namespace

absl::StatusOr<LinkedTree> LinkTree(const std::string& from, const std::string& to,
                                    const std::function<bool()>& stopped) {
  TP_ASSIGN_OR_RETURN(const std::vector<Found> all, ListTree(from, stopped));
  const auto [parent, name] = Split(to);
  TP_RETURN_IF_ERROR(MakeDirectoriesBeneath(parent, name, kTreeMode).status());
  LinkedTree linked;
  for (const Found& found : all) {
    if (IsOfRanks(found)) continue;
    if (S_ISDIR(found.mode)) {
      TP_RETURN_IF_ERROR(FolderIn(to, found.path() + "/").status());
      continue;
    }
    const std::optional<Place> place = Find(from, found);
    if (!place) continue;
    const Directory source{UniqueFd(dup(place->folder.get())), from + "/" + found.folder};
    TP_ASSIGN_OR_RETURN(const Directory target, FolderIn(to, found.folder));
    TP_RETURN_IF_ERROR(LinkOne(source, target, found));
    ++linked.files;
    if (S_ISREG(found.mode)) linked.bytes += found.bytes;
  }
  return linked;
}

absl::StatusOr<int64_t> BytesInTree(const std::string& path, const std::function<bool()>& stopped) {
  TP_ASSIGN_OR_RETURN(const std::vector<Found> all, ListTree(path, stopped));
  int64_t bytes = 0;
  for (const Found& found : all) bytes += S_ISREG(found.mode) ? found.bytes : 0;
  return bytes;
}

absl::Status MergeTree(const MergePlan& plan, const std::function<bool()>& stopped) {
  return Merge(plan, stopped).Run();
}

}  // namespace tp::node
