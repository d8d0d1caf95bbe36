// Runs the Loop on a thread of its own and its transactions on a second one (DESIGN 12): the loop
// decides batch N + 1 while the writer commits N; one commit is in flight, none waits to fill.
// Thread-safe. Replies, listeners and effects are called on the loop's thread.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "loop/loop.h"
#include "store/store.h"

namespace tp::loop {

struct ThreadHooks {
  // The real-time clock, which others may set at any moment.
  std::function<absl::Time()> wall_clock = absl::Now;
  // A commit that failed for another reason than a full disk: the state of the storage is not known.
  // Must not return.
  std::function<void(const absl::Status&)> fatal;
  // The disk is full: make room (the ballast). Called again before each further try.
  std::function<void()> disk_full;
};

class LoopThread {
 public:
  // `loop` and `store` outlive this object; after Start nobody else touches them.
  LoopThread(Loop& loop, store::Store& store, ThreadHooks hooks);
  ~LoopThread();

  void Start();
  // What was committed leaves, what waits is answered UNAVAILABLE. Idempotent. Posts that come later are
  // answered at once, on the caller's thread.
  void Stop();

  void Post(Command command, Reply reply);
  void Post(std::vector<Command> commands, BulkReply reply);
  void Post(DryRun dry_run, Reply reply);
  void Post(Query query, QueryReply reply);
  void Post(StandingQuery query, StandingReply reply);
  void Post(ForecastQuery query, ForecastReply reply);
  void Post(WhatIfQuery query, WhatIfReply reply);
  void Post(EffectAnswered answered);
  void Post(AttemptObserved observed);
  void Post(StorageScanned scanned);
  void Post(CheckpointsSeen seen);
  void Post(NodesQuery query, NodesReply reply);
  void Post(CardsHeldElsewhere held);
  void Post(CardsSeen seen);
  void Post(std::shared_ptr<const core::Registry> registry);

  // Since when the loop has not finished a turn or a commit although it has work; zero: it keeps up.
  absl::Duration Stalled() const;
  absl::Duration LongestTurn() const { return absl::Microseconds(longest_turn_us_.load()); }
  int64_t Commits() const { return commits_.load(); }

 private:
  using Clock = std::chrono::steady_clock;

  void Enqueue(std::function<void()> post);
  void AbandonRest();
  void RunLoop();
  void RunWriter();
  bool Wait(std::unique_lock<std::mutex>& lock);
  absl::Duration ClockSetBy() const;
  void TurnOnce();
  void HandOver(store::Txn txn);
  void Commit(const store::Txn& txn);

  Loop& loop_;
  store::Store& store_;
  const ThreadHooks hooks_;

  mutable std::mutex mutex_;
  std::condition_variable wake_loop_;
  std::condition_variable wake_writer_;
  std::vector<std::function<void()>> inbox_;                        // guarded by mutex_
  std::map<std::string, std::shared_ptr<AttemptObserved>> unread_;  // guarded by mutex_: the newest in inbox_, by key
  std::optional<store::Txn> next_;                                  // guarded by mutex_: decided, waits for the writer
  bool writing_ = false;                                            // guarded by mutex_
  int64_t done_ = 0;                               // guarded by mutex_: commits whose effects have not left yet
  bool stop_ = false;                              // guarded by mutex_
  bool loop_ended_ = false;                        // guarded by mutex_: no transaction will follow
  bool ended_ = false;                             // guarded by mutex_: both threads are joined
  std::optional<Clock::time_point> busy_since_;    // guarded by mutex_: a message waits or a turn is computed
  std::optional<Clock::time_point> commit_since_;  // guarded by mutex_: a transaction waits or is written
  absl::Duration wall_ahead_;                      // of the steady clock; the loop's thread only
  std::atomic<int64_t> longest_turn_us_{0};
  std::atomic<int64_t> commits_{0};
  std::thread loop_thread_;
  std::thread writer_thread_;
};

}  // namespace tp::loop
