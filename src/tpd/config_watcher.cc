#include "tpd/config_watcher.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "base/status.h"
#include "config/load.h"

namespace tp::tpd {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr uint32_t kEvents = IN_CLOSE_WRITE | IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_MODIFY |
                             IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR;

// Which file it is and what it was last written, through links; the same for a file that is missing.
std::string FingerprintOf(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return "missing";
  return fmt::format("{}:{}:{}:{}.{}", status.st_dev, status.st_ino, status.st_size, status.st_mtim.tv_sec,
                     status.st_mtim.tv_nsec);
}

}  // namespace

absl::StatusOr<std::unique_ptr<ConfigWatcher>> ConfigWatcher::Start(std::string directory,
                                                                    std::function<void()> changed, WatchTimes times) {
  UniqueFd inotify(inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  UniqueFd stop(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!inotify.valid() || !stop.valid()) {
    return Unavailable(
        "cannot watch {}: no inotify instance or descriptor is left; raise fs.inotify.max_user_instances, or use "
        "SIGHUP and `tp admin reload`",
        directory);
  }
  return std::unique_ptr<ConfigWatcher>(
      new ConfigWatcher(std::move(directory), std::move(changed), times, std::move(inotify), std::move(stop)));
}

ConfigWatcher::ConfigWatcher(std::string directory, std::function<void()> changed, WatchTimes times, UniqueFd inotify,
                             UniqueFd stop)
    : directory_(std::move(directory)),
      changed_(std::move(changed)),
      times_(times),
      inotify_(std::move(inotify)),
      stop_(std::move(stop)) {
  Watch();
  thread_ = std::thread([this, known = Fingerprint()]() mutable {
    while (!stopping()) {
      if (WaitFor(times_.look)) Settle();
      if (stopping()) return;
      Watch();
      const std::string now = Fingerprint();
      if (std::exchange(known, now) != now) changed_();
    }
  });
}

ConfigWatcher::~ConfigWatcher() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(stop_.get(), &one, sizeof one);
  thread_.join();
}

// Also where it is watched already: the path may lead to another directory by now.
void ConfigWatcher::Watch() { inotify_add_watch(inotify_.get(), directory_.c_str(), kEvents); }

// Whether something happened, or the watcher is to stop, before `time` was over.
bool ConfigWatcher::WaitFor(milliseconds time) const {
  std::array<pollfd, 2> fds = {
      {{.fd = inotify_.get(), .events = POLLIN, .revents = 0}, {.fd = stop_.get(), .events = POLLIN, .revents = 0}}};
  return poll(fds.data(), fds.size(), static_cast<int>(time.count())) > 0;
}

// Until nothing has happened for a while: editors and kubernetes write in several steps.
void ConfigWatcher::Settle() {
  const auto latest = steady_clock::now() + times_.longest;
  do {
    Drain();
    const auto left = std::chrono::duration_cast<milliseconds>(latest - steady_clock::now());
    if (left <= milliseconds::zero() || !WaitFor(std::min(times_.quiet, left))) return;
  } while (!stopping());
}

void ConfigWatcher::Drain() const {
  std::array<char, 4096> events{};
  while (read(inotify_.get(), events.data(), events.size()) > 0) {
  }
}

bool ConfigWatcher::stopping() const {
  pollfd fd = {.fd = stop_.get(), .events = POLLIN, .revents = 0};
  return poll(&fd, 1, 0) > 0;
}

std::string ConfigWatcher::Fingerprint() const {
  return FingerprintOf(fmt::format("{}/{}", directory_, config::kServerFileName)) + " " +
         FingerprintOf(fmt::format("{}/{}", directory_, config::kRegistryFileName));
}

}  // namespace tp::tpd
