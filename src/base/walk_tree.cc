#include "base/walk_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <memory>
#include <utility>
#include <vector>

#include "base/printable.h"
#include "base/status.h"

namespace tp {
namespace {

constexpr int kDirectoryFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

// Gone, or something else has its name now.
bool Vanished(int error) { return error == ENOENT || error == ENOTDIR || error == ELOOP; }

// Depth first. One directory is open at a time; `..` leads back to the one above, and from the top down
// by name where that no longer is the one above.
class Walk {
 public:
  Walk(const Directory& top, const std::function<void(const WalkedEntry&)>& visit, const std::function<bool()>& stopped)
      : top_(top), visit_(visit), stopped_(stopped) {}

  absl::Status Go(const std::string& name) {
    TP_RETURN_IF_ERROR(Enter(name));
    while (!levels_.empty()) {
      TP_RETURN_IF_ERROR(CheckStopped());
      if (levels_.back().waiting.empty()) {
        TP_RETURN_IF_ERROR(Leave());
        continue;
      }
      const std::string next = std::move(levels_.back().waiting.back());
      levels_.back().waiting.pop_back();
      TP_RETURN_IF_ERROR(Enter(next));
    }
    return absl::OkStatus();
  }

 private:
  struct Level {
    std::string name;
    ino_t inode = 0;
    std::vector<std::string> waiting;  // directories in it that are still to be entered
  };

  absl::Status Enter(const std::string& name) {
    UniqueFd fd(openat(levels_.empty() ? top_.fd.get() : here_.get(), name.c_str(), kDirectoryFlags));
    if (!fd.valid()) return Vanished(errno) ? absl::OkStatus() : Failure("open the directory", name);
    struct stat about {};
    if (fstat(fd.get(), &about) != 0) return Failure("look at", name);
    if (levels_.empty()) device_ = about.st_dev;
    if (about.st_dev != device_) return absl::OkStatus();
    if (levels_.empty()) visit_({folder_, folder_, about});
    here_ = std::move(fd);
    if (!levels_.empty()) folder_ += name + "/";
    levels_.push_back({name, about.st_ino, {}});
    return List();
  }

  absl::Status List() {
    UniqueFd copy(fcntl(here_.get(), F_DUPFD_CLOEXEC, 0));
    const std::unique_ptr<DIR, int (*)(DIR*)> stream(fdopendir(copy.get()), closedir);
    if (!stream) return Failure("list", ".");
    copy.release();
    for (;;) {
      TP_RETURN_IF_ERROR(CheckStopped());
      errno = 0;
      const dirent* entry = readdir(stream.get());
      if (entry == nullptr) return errno == 0 || Vanished(errno) ? absl::OkStatus() : Failure("list", ".");
      const std::string name = entry->d_name;
      if (name != "." && name != "..") TP_RETURN_IF_ERROR(Visit(name));
    }
  }

  absl::Status Visit(const std::string& name) {
    struct stat about {};
    if (fstatat(here_.get(), name.c_str(), &about, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) != 0) {
      return Vanished(errno) ? absl::OkStatus() : Failure("look at", name);
    }
    if (about.st_dev != device_) return absl::OkStatus();
    if (S_ISDIR(about.st_mode)) levels_.back().waiting.push_back(name);
    visit_({folder_, name, about});
    return absl::OkStatus();
  }

  absl::Status Leave() {
    if (levels_.size() > 1) folder_.resize(folder_.size() - levels_.back().name.size() - 1);
    levels_.pop_back();
    if (levels_.empty()) return absl::OkStatus();
    UniqueFd above(openat(here_.get(), "..", kDirectoryFlags));
    if (!Is(above, levels_.back())) return Return();
    here_ = std::move(above);
    return absl::OkStatus();
  }

  // To the deepest level that still is where it was; what was beneath it has gone or moved away.
  absl::Status Return() {
    here_.reset();
    for (size_t i = 0; i < levels_.size(); ++i) {
      const int above = i == 0 ? top_.fd.get() : here_.get();
      UniqueFd next(openat(above, levels_[i].name.c_str(), kDirectoryFlags));
      if (!next.valid() && !Vanished(errno)) return Failure("open the directory", ".");
      if (!Is(next, levels_[i])) {
        levels_.resize(i);
        NameFolder();
        return absl::OkStatus();
      }
      here_ = std::move(next);
    }
    return absl::OkStatus();
  }

  absl::Status CheckStopped() const {
    if (!stopped_()) return absl::OkStatus();
    return Error(absl::StatusCode::kCancelled, "stopped while {} was gone through", top_.path);
  }

  void NameFolder() {
    folder_.clear();
    for (size_t i = 1; i < levels_.size(); ++i) folder_ += levels_[i].name + "/";
  }

  bool Is(const UniqueFd& fd, const Level& level) const {
    struct stat about {};
    return fd.valid() && fstat(fd.get(), &about) == 0 && about.st_dev == device_ && about.st_ino == level.inode;
  }

  absl::Status Failure(std::string_view doing, const std::string& name) const {
    const int error = errno;
    std::string path;
    for (const Level& level : levels_) path += level.name + "/";
    return ErrnoStatus(error, doing, fmt::format("{} in {}", Quoted(path + name), top_.path));
  }

  const Directory& top_;
  const std::function<void(const WalkedEntry&)>& visit_;
  const std::function<bool()>& stopped_;
  dev_t device_ = 0;
  UniqueFd here_;  // of the last level
  std::vector<Level> levels_;
  std::string folder_;  // of the last level, from the top
};

}  // namespace

absl::Status WalkTree(const Directory& directory, const std::string& name,
                      const std::function<void(const WalkedEntry&)>& visit, const std::function<bool()>& stopped) {
  return Walk(directory, visit, stopped).Go(name);
}

}  // namespace tp
