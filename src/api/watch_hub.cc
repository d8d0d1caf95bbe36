#include "api/watch_hub.h"

#include <algorithm>
#include <set>
#include <utility>

namespace tp::api {

WatchHub::WatchHub(int64_t revision, size_t max_events)
    : max_events_(max_events), held_after_(revision), revision_(revision) {}

void WatchHub::OnCommit(const loop::CommitNotice& notice) {
  std::set<int64_t> changed;
  for (const store::EventRow& event : notice.events) changed.insert(event.run);
  std::vector<std::function<void()>> wakes;
  {
    const std::lock_guard lock(mutex_);
    revision_ = std::max(revision_, notice.revision);
    events_.insert(events_.end(), notice.events.begin(), notice.events.end());
    while (events_.size() > max_events_) {
      held_after_ = events_.front().revision;
      events_.pop_front();
    }
    for (auto waiter = waiters_.begin(); waiter != waiters_.end();) {
      const int64_t run = waiter->second.run;
      if (changed.contains(run) || (run == 0 && !changed.empty())) {
        wakes.push_back(std::move(waiter->second.wake));
        waiter = waiters_.erase(waiter);
      } else {
        ++waiter;
      }
    }
  }
  for (const auto& wake : wakes) wake();
}

int64_t WatchHub::revision() const {
  const std::lock_guard lock(mutex_);
  return revision_;
}

std::optional<std::vector<store::EventRow>> WatchHub::After(int64_t after, size_t limit) const {
  const std::lock_guard lock(mutex_);
  if (!Holds(after)) return std::nullopt;
  const auto first = std::upper_bound(events_.begin(), events_.end(), after,
                                      [](int64_t revision, const store::EventRow& e) { return revision < e.revision; });
  const auto count = std::min<std::ptrdiff_t>(events_.end() - first, static_cast<std::ptrdiff_t>(limit));
  return std::vector<store::EventRow>(first, first + count);
}

WatchHub::WaitId WatchHub::Wait(int64_t run, int64_t after, std::function<void()> wake) {
  {
    const std::lock_guard lock(mutex_);
    const WaitId id = next_wait_++;
    if (!MayHaveEvent(run, after)) {
      waiters_[id] = {.run = run, .wake = std::move(wake)};
      return id;
    }
  }
  wake();
  return 0;
}

void WatchHub::Cancel(WaitId id) {
  const std::lock_guard lock(mutex_);
  waiters_.erase(id);
}

bool WatchHub::Holds(int64_t after) const { return after >= held_after_; }

bool WatchHub::MayHaveEvent(int64_t run, int64_t after) const {
  if (!Holds(after)) return true;
  for (auto event = events_.rbegin(); event != events_.rend() && event->revision > after; ++event) {
    if (run == 0 || event->run == run) return true;
  }
  return false;
}

}  // namespace tp::api
