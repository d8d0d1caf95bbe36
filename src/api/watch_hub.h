// Between the loop's commits and the streams that follow them. One ring of the newest events is shared
// by all followers, each of which only keeps how far it has come: a slow follower costs nothing and
// falls out of the ring.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "loop/commands.h"
#include "store/rows.h"

namespace tp::api {

// Thread-safe.
class WatchHub {
 public:
  // `revision`: the newest committed one at start.
  explicit WatchHub(int64_t revision, size_t max_events = 8192);

  // A loop::CommitListener.
  void OnCommit(const loop::CommitNotice& notice);

  int64_t revision() const;

  // The next events above `after`, at most `limit`, in order. Nothing: some of them are no longer
  // held; they are in the store.
  std::optional<std::vector<store::EventRow>> After(int64_t after, size_t limit) const;

  // Calls `wake` once when there is an event above `after`, of this run unless 0; at once, on the
  // calling thread, where there may be one already. `wake` must not block; it may still be running
  // when Cancel returns.
  using WaitId = uint64_t;
  WaitId Wait(int64_t run, int64_t after, std::function<void()> wake);
  void Cancel(WaitId id);

 private:
  struct Waiter {
    int64_t run = 0;
    std::function<void()> wake;
  };

  bool Holds(int64_t after) const;                      // mutex_ held
  bool MayHaveEvent(int64_t run, int64_t after) const;  // mutex_ held

  const size_t max_events_;
  mutable std::mutex mutex_;
  std::deque<store::EventRow> events_;  // by revision; guarded by mutex_
  int64_t held_after_;                  // every event above it is in events_; guarded by mutex_
  int64_t revision_;                    // guarded by mutex_
  std::map<WaitId, Waiter> waiters_;    // guarded by mutex_
  WaitId next_wait_ = 1;                // guarded by mutex_
};

}  // namespace tp::api
