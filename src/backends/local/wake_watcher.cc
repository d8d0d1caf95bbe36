#include "backends/local/wake_watcher.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <set>
#include <string_view>

#include "base/file.h"

namespace tp::local {
namespace {

constexpr uint64_t kStopTag = 0;
constexpr uint64_t kInotifyTag = 1;
constexpr uint64_t kFirstProcessTag = 2;

// Logs, heartbeats and temporary files say nothing new.
bool IsRecord(std::string_view name) {
  return !name.starts_with('.') && (name.ends_with(".claim") || name.ends_with(".started") || name.ends_with(".exit"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<WakeWatcher>> WakeWatcher::Start(Wake wake) {
  UniqueFd epoll(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll.valid()) return ErrnoStatus(errno, "make", "an epoll instance");
  UniqueFd inotify(inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  if (!inotify.valid()) return ErrnoStatus(errno, "make", "an inotify instance (fs.inotify.max_user_instances)");
  UniqueFd stop(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!stop.valid()) return ErrnoStatus(errno, "make", "an eventfd");
  std::unique_ptr<WakeWatcher> watcher(
      new WakeWatcher(std::move(wake), std::move(epoll), std::move(inotify), std::move(stop)));
  if (!watcher->Add(watcher->stop_.get(), EPOLLIN, kStopTag) ||
      !watcher->Add(watcher->inotify_.get(), EPOLLIN, kInotifyTag)) {
    return ErrnoStatus(errno, "set up", "an epoll instance");
  }
  watcher->thread_ = std::thread(&WakeWatcher::Run, watcher.get());
  return watcher;
}

WakeWatcher::WakeWatcher(Wake wake, UniqueFd epoll, UniqueFd inotify, UniqueFd stop)
    : wake_(std::move(wake)),
      epoll_(std::move(epoll)),
      inotify_(std::move(inotify)),
      stop_(std::move(stop)),
      next_tag_(kFirstProcessTag) {}

WakeWatcher::~WakeWatcher() {
  if (!thread_.joinable()) return;
  const uint64_t one = 1;
  // An eventfd at zero takes a one.
  [[maybe_unused]] const ssize_t written = write(stop_.get(), &one, sizeof one);
  thread_.join();
}

bool WakeWatcher::Add(int fd, uint32_t events, uint64_t tag) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = tag;
  return epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0;
}

void WakeWatcher::WatchDirectory(const std::string& key, const std::string& path) {
  const std::lock_guard lock(mutex_);
  Watched& watched = watched_[key];
  if (watched.directory >= 0) return;
  watched.directory = inotify_add_watch(inotify_.get(), path.c_str(), IN_MOVED_TO | IN_CREATE | IN_ONLYDIR);
  if (watched.directory >= 0) key_of_directory_[watched.directory] = key;
}

void WakeWatcher::WatchProcess(const std::string& key, int pidfd) {
  const std::lock_guard lock(mutex_);
  const uint64_t tag = next_tag_++;
  watched_[key].processes.push_back(tag);
  key_of_process_[tag] = key;
  // An end is told once; a failure leaves it to the next observation.
  Add(pidfd, EPOLLIN | EPOLLONESHOT, tag);
}

void WakeWatcher::Forget(const std::string& key) {
  const std::lock_guard lock(mutex_);
  const auto found = watched_.find(key);
  if (found == watched_.end()) return;
  if (found->second.directory >= 0) {
    inotify_rm_watch(inotify_.get(), found->second.directory);
    key_of_directory_.erase(found->second.directory);
  }
  for (const uint64_t tag : found->second.processes) key_of_process_.erase(tag);
  watched_.erase(found);
}

void WakeWatcher::Run() {
  std::array<epoll_event, 64> events{};
  for (;;) {
    const int ready = epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), -1);
    for (int i = 0; i < ready; ++i) {
      const uint64_t tag = events[static_cast<size_t>(i)].data.u64;
      if (tag == kStopTag) return;
      if (tag == kInotifyTag) {
        TakeDirectoryEvents();
      } else {
        WakeProcessOwner(tag);
      }
    }
  }
}

void WakeWatcher::TakeDirectoryEvents() {
  alignas(inotify_event) std::array<char, 16 * 1024> buffer{};
  const ssize_t size = read(inotify_.get(), buffer.data(), buffer.size());
  std::set<std::string> keys;
  {
    const std::lock_guard lock(mutex_);
    for (ssize_t at = 0; at < size;) {
      inotify_event event{};
      std::memcpy(&event, buffer.data() + at, sizeof event);
      const char* name = buffer.data() + at + sizeof event;
      at += static_cast<ssize_t>(sizeof event + event.len);
      const auto found = key_of_directory_.find(event.wd);
      if (found != key_of_directory_.end() && event.len > 0 && IsRecord(name)) keys.insert(found->second);
      if ((event.mask & IN_Q_OVERFLOW) != 0) {
        for (const auto& [directory, key] : key_of_directory_) keys.insert(key);
      }
    }
  }
  for (const std::string& key : keys) wake_(key);
}

void WakeWatcher::WakeProcessOwner(uint64_t tag) {
  std::optional<std::string> key;
  {
    const std::lock_guard lock(mutex_);
    const auto found = key_of_process_.find(tag);
    if (found != key_of_process_.end()) key = found->second;
  }
  if (key) wake_(*key);
}

}  // namespace tp::local
