// Calls back when something may have changed at an attempt: a claim or record appeared in its directory
// (inotify), or a runner ended (pidfd). Hints only; one thread of its own. Thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "base/fd.h"

namespace tp::local {

class WakeWatcher {
 public:
  using Wake = std::function<void(const std::string& key)>;

  static absl::StatusOr<std::unique_ptr<WakeWatcher>> Start(Wake wake);
  ~WakeWatcher();  // no call of `wake` after it

  // Where the machine has no watch left the attempt goes unwatched. A repeated call changes nothing.
  void WatchDirectory(const std::string& key, const std::string& path);

  // `pidfd` stays the caller's; closing it ends the watch.
  void WatchProcess(const std::string& key, int pidfd);

  void Forget(const std::string& key);

 private:
  struct Watched {
    int directory = -1;               // inotify watch
    std::vector<uint64_t> processes;  // epoll tags
  };

  WakeWatcher(Wake wake, UniqueFd epoll, UniqueFd inotify, UniqueFd stop);
  bool Add(int fd, uint32_t events, uint64_t tag);
  void Run();
  void TakeDirectoryEvents();
  void WakeProcessOwner(uint64_t tag);

  const Wake wake_;
  const UniqueFd epoll_;
  const UniqueFd inotify_;
  const UniqueFd stop_;
  std::mutex mutex_;
  std::map<std::string, Watched> watched_;
  std::map<int, std::string> key_of_directory_;
  std::map<uint64_t, std::string> key_of_process_;
  uint64_t next_tag_;
  std::thread thread_;
};

}  // namespace tp::local
