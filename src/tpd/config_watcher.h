// Notices on a thread of its own that the configuration files are not what they were: written in place,
// replaced by rename, or behind a symbolic link that was swapped, as kubernetes does with a ConfigMap.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "base/fd.h"

namespace tp::tpd {

struct WatchTimes {
  std::chrono::milliseconds quiet{200};     // nothing new for so long: the writer has finished
  std::chrono::milliseconds longest{2000};  // told at the latest, whatever still happens
  std::chrono::milliseconds look{5000};     // the files are looked at this often, whatever inotify says
};

class ConfigWatcher {
 public:
  // Calls `changed` on its own thread after each change. The directory may come and go.
  static absl::StatusOr<std::unique_ptr<ConfigWatcher>> Start(std::string directory, std::function<void()> changed,
                                                              WatchTimes times = {});
  ~ConfigWatcher();
  ConfigWatcher(const ConfigWatcher&) = delete;
  ConfigWatcher& operator=(const ConfigWatcher&) = delete;

 private:
  ConfigWatcher(std::string directory, std::function<void()> changed, WatchTimes times, UniqueFd inotify,
                UniqueFd stop);

  void Watch();
  bool WaitFor(std::chrono::milliseconds time) const;
  void Settle();
  void Drain() const;
  bool stopping() const;
  std::string Fingerprint() const;

  const std::string directory_;
  const std::function<void()> changed_;
  const WatchTimes times_;
  const UniqueFd inotify_;
  const UniqueFd stop_;  // an eventfd
  std::thread thread_;
};

}  // namespace tp::tpd
