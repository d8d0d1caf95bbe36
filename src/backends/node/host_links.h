// All machines that this backend was ever asked about, and the thread that probes those that do not
// answer, so that no call waits for them. Thread-safe.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "backends/node/crew.h"
#include "backends/node/host_link.h"

namespace tp::node {

class HostLinks {
 public:
  // `opened` is called with a host that answers again.
  HostLinks(RemoteShell& shell, const RankBinary& binary, absl::Duration probe_limit,
            std::function<void(const RankHost& host)> opened);
  ~HostLinks();  // waits for calls under way: cancel the shell first

  std::shared_ptr<HostLink> Of(const RankHost& host);
  std::vector<std::shared_ptr<HostLink>> All() const;

 private:
  struct Entry {
    std::shared_ptr<HostLink> link;
    bool probing = false;
  };

  void ProbeInTurn();
  std::vector<Entry*> TakeDue();  // with the mutex held

  RemoteShell& shell_;
  const RankBinary& binary_;
  const absl::Duration probe_limit_;
  const std::function<void(const RankHost& host)> opened_;

  mutable std::mutex mutex_;
  std::condition_variable stop_;
  bool stopping_ = false;
  std::map<std::pair<std::string, std::string>, Entry> links_;  // by node and address; none is removed
  Crew crew_;
  std::thread prober_;
};

}  // namespace tp::node
