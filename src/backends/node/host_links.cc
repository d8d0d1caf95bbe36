#include "backends/node/host_links.h"

#include <chrono>
#include <utility>

#include "absl/time/clock.h"
#include "base/since_boot.h"

namespace tp::node {
namespace {

// How late a probe may be.
constexpr std::chrono::milliseconds kTurn{100};

}  // namespace

HostLinks::HostLinks(RemoteShell& shell, const RankBinary& binary, absl::Duration probe_limit,
                     std::function<void(const RankHost& host)> opened)
    : shell_(shell), binary_(binary), probe_limit_(probe_limit), opened_(std::move(opened)) {
  prober_ = std::thread(&HostLinks::ProbeInTurn, this);
}

HostLinks::~HostLinks() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  stop_.notify_all();
  prober_.join();
}

std::shared_ptr<HostLink> HostLinks::Of(const RankHost& host) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<HostLink>& link = links_[{host.node, host.address}].link;
  if (!link) link = std::make_shared<HostLink>(host, shell_, binary_, [this, host] { opened_(host); });
  return link;
}

std::vector<std::shared_ptr<HostLink>> HostLinks::All() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<HostLink>> all;
  all.reserve(links_.size());
  for (const auto& [name, entry] : links_) all.push_back(entry.link);
  return all;
}

std::vector<HostLinks::Entry*> HostLinks::TakeDue() {
  const absl::Duration now = SinceBoot();
  std::vector<Entry*> due;
  for (auto& [name, entry] : links_) {
    if (entry.probing || entry.link->NextProbe() > now) continue;
    entry.probing = true;
    due.push_back(&entry);
  }
  return due;
}

void HostLinks::ProbeInTurn() {
  std::unique_lock lock(mutex_);
  while (!stop_.wait_for(lock, kTurn, [this] { return stopping_; })) {
    const std::vector<Entry*> due = TakeDue();
    lock.unlock();
    for (Entry* entry : due) {
      crew_.Start([this, entry, link = entry->link] {
        link->Probe(absl::Now() + probe_limit_);
        const std::lock_guard done(mutex_);
        entry->probing = false;
      });
    }
    lock.lock();
  }
}

}  // namespace tp::node
