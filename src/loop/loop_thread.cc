#include "loop/loop_thread.h"

#include <algorithm>
#include <utility>

#include "base/fault_point.h"
#include "base/since_boot.h"

namespace tp::loop {
namespace {

constexpr auto kDiskFullRetry = std::chrono::milliseconds(200);
// The real-time clock may be set meanwhile: no wait is longer than this without a look at it.
constexpr absl::Duration kLongestSleep = absl::Seconds(60);
// A clock that is slowly adjusted counts as set once this much has come together.
constexpr absl::Duration kClockSet = absl::Seconds(1);

}  // namespace

LoopThread::LoopThread(Loop& loop, store::Store& store, ThreadHooks hooks)
    : loop_(loop),
      store_(store),
      hooks_(std::move(hooks)),
      wall_ahead_(hooks_.wall_clock() - absl::UnixEpoch() - SinceBoot()) {}

LoopThread::~LoopThread() { Stop(); }

void LoopThread::Start() {
  loop_.Recover();
  writer_thread_ = std::thread([this] { RunWriter(); });
  loop_thread_ = std::thread([this] { RunLoop(); });
}

void LoopThread::Stop() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_loop_.notify_all();
  if (loop_thread_.joinable()) loop_thread_.join();
  if (writer_thread_.joinable()) writer_thread_.join();
  AbandonRest();
}

void LoopThread::Enqueue(std::function<void()> post) {
  {
    std::lock_guard lock(mutex_);
    inbox_.push_back(std::move(post));
    if (!busy_since_) busy_since_ = Clock::now();
    if (!ended_) {
      wake_loop_.notify_one();
      return;
    }
  }
  AbandonRest();
}

// The threads are gone: what waits is answered by whoever comes by.
void LoopThread::AbandonRest() {
  std::vector<std::function<void()>> answers;
  {
    std::lock_guard lock(mutex_);
    ended_ = true;
    for (auto& post : std::exchange(inbox_, {})) post();
    answers = loop_.Abandon();
  }
  for (auto& answer : answers) answer();
}

void LoopThread::Post(Command command, Reply reply) {
  Enqueue([this, command = std::move(command), reply = std::move(reply)]() mutable {
    loop_.Post(std::move(command), std::move(reply));
  });
}
void LoopThread::Post(std::vector<Command> commands, BulkReply reply) {
  Enqueue([this, commands = std::move(commands), reply = std::move(reply)]() mutable {
    loop_.Post(std::move(commands), std::move(reply));
  });
}
void LoopThread::Post(DryRun dry_run, Reply reply) {
  Enqueue([this, dry_run = std::move(dry_run), reply = std::move(reply)]() mutable {
    loop_.Post(std::move(dry_run), std::move(reply));
  });
}
void LoopThread::Post(Query query, QueryReply reply) {
  Enqueue([this, query = std::move(query), reply = std::move(reply)]() mutable {
    loop_.Post(std::move(query), std::move(reply));
  });
}
void LoopThread::Post(StandingQuery query, StandingReply reply) {
  Enqueue([this, query = std::move(query), reply = std::move(reply)]() mutable {
    loop_.Post(std::move(query), std::move(reply));
  });
}
void LoopThread::Post(ForecastQuery query, ForecastReply reply) {
  Enqueue([this, query = std::move(query), reply = std::move(reply)]() mutable {
    loop_.Post(std::move(query), std::move(reply));
  });
}
void LoopThread::Post(WhatIfQuery query, WhatIfReply reply) {
  Enqueue([this, query = std::move(query), reply = std::move(reply)]() mutable {
    loop_.Post(std::move(query), std::move(reply));
  });
}
void LoopThread::Post(NodesQuery query, NodesReply reply) {
  Enqueue([this, query, reply = std::move(reply)]() mutable { loop_.Post(query, std::move(reply)); });
}
void LoopThread::Post(CardsHeldElsewhere held) {
  Enqueue([this, held = std::move(held)]() mutable { loop_.Post(std::move(held)); });
}
void LoopThread::Post(CardsSeen seen) {
  Enqueue([this, seen = std::move(seen)]() mutable { loop_.Post(std::move(seen)); });
}
void LoopThread::Post(StorageScanned scanned) {
  Enqueue([this, scanned = std::move(scanned)]() mutable { loop_.Post(std::move(scanned)); });
}
void LoopThread::Post(CheckpointsSeen seen) {
  Enqueue([this, seen = std::move(seen)]() mutable { loop_.Post(std::move(seen)); });
}
void LoopThread::Post(EffectAnswered answered) {
  Enqueue([this, answered = std::move(answered)]() mutable { loop_.Post(std::move(answered)); });
}
// While commits hang nothing is taken in: of one attempt only the newest sight of a kind waits. Another
// kind is kept apart, or an Unknown between two Absents would be lost.
void LoopThread::Post(AttemptObserved observed) {
  auto newest = std::make_shared<AttemptObserved>(std::move(observed));
  {
    std::lock_guard lock(mutex_);
    std::shared_ptr<AttemptObserved>& waiting = unread_[newest->key];
    if (waiting && waiting->observation.index() == newest->observation.index()) {
      waiting->observation = std::move(newest->observation);
      return;
    }
    waiting = newest;
  }
  Enqueue([this, newest] { loop_.Post(std::move(*newest)); });
}
void LoopThread::Post(std::shared_ptr<const core::Registry> registry) {
  Enqueue([this, registry = std::move(registry)]() mutable { loop_.Post(std::move(registry)); });
}

absl::Duration LoopThread::Stalled() const {
  std::lock_guard lock(mutex_);
  const auto now = Clock::now();
  return absl::FromChrono(now - std::min(busy_since_.value_or(now), commit_since_.value_or(now)));
}

// Waits until there is something to do; false: stopping and nothing under way.
bool LoopThread::Wait(std::unique_lock<std::mutex>& lock) {
  while (true) {
    if (done_ > 0) return true;
    if (stop_) {
      if (!writing_ && !next_) return false;
      wake_loop_.wait(lock);
      continue;
    }
    // While one decided transaction waits for the writer, no further one is decided.
    if (!next_) {
      if (!inbox_.empty() || loop_.HasMessages()) return true;
      const auto timer = loop_.NextTimer();
      const absl::Duration sleep = timer ? *timer - hooks_.wall_clock() : kLongestSleep;
      if (sleep <= absl::ZeroDuration() || ClockSetBy() != absl::ZeroDuration()) return true;
      busy_since_.reset();
      wake_loop_.wait_for(lock, absl::ToChronoNanoseconds(std::min(sleep, kLongestSleep)));
    } else {
      wake_loop_.wait(lock);
    }
  }
}

void LoopThread::RunLoop() {
  std::unique_lock lock(mutex_);
  while (Wait(lock)) {
    const int64_t done = std::exchange(done_, 0);
    std::vector<std::function<void()>> inbox;
    const bool may_turn = !stop_ && !next_;
    if (may_turn) {
      inbox.swap(inbox_);
      unread_.clear();
    }
    busy_since_ = Clock::now();
    lock.unlock();
    for (int64_t i = 0; i < done; ++i) loop_.Committed();
    for (auto& post : inbox) post();
    if (may_turn) TurnOnce();
    lock.lock();
  }
  loop_ended_ = true;
  wake_writer_.notify_one();
}

// Zero while it runs on as the steady clock does.
absl::Duration LoopThread::ClockSetBy() const {
  const absl::Duration by = hooks_.wall_clock() - absl::UnixEpoch() - SinceBoot() - wall_ahead_;
  return absl::AbsDuration(by) < kClockSet ? absl::ZeroDuration() : by;
}

void LoopThread::TurnOnce() {
  const Clock::time_point start = Clock::now();
  if (const absl::Duration by = ClockSetBy(); by != absl::ZeroDuration()) {
    wall_ahead_ += by;
    loop_.ClockSet(by);
  }
  std::optional<store::Txn> txn = loop_.Turn(hooks_.wall_clock());
  const int64_t took_us = absl::ToInt64Microseconds(absl::FromChrono(Clock::now() - start));
  if (took_us > longest_turn_us_.load()) longest_turn_us_.store(took_us);
  if (txn) HandOver(*std::move(txn));
}

void LoopThread::HandOver(store::Txn txn) {
  {
    std::lock_guard lock(mutex_);
    next_ = std::move(txn);
    if (!commit_since_) commit_since_ = Clock::now();
  }
  wake_writer_.notify_one();
}

void LoopThread::RunWriter() {
  std::unique_lock lock(mutex_);
  while (true) {
    wake_writer_.wait(lock, [this] { return next_ || loop_ended_; });
    if (!next_) return;
    const store::Txn txn = *std::exchange(next_, std::nullopt);
    writing_ = true;
    lock.unlock();
    wake_loop_.notify_one();  // the next batch may be decided
    Commit(txn);
    lock.lock();
    writing_ = false;
    commit_since_ = next_ ? std::optional(Clock::now()) : std::nullopt;
    ++done_;
    wake_loop_.notify_one();
  }
}

void LoopThread::Commit(const store::Txn& txn) {
  const bool corrects = !txn.corrections_done.empty();
  if (corrects) ReachFaultPoint(FaultPoint::kBeforeCorrectionCommit);
  ReachFaultPoint(FaultPoint::kBeforeCommit);
  absl::Status status = store_.Commit(txn);
  while (absl::IsResourceExhausted(status)) {
    if (hooks_.disk_full) hooks_.disk_full();
    std::this_thread::sleep_for(kDiskFullRetry);
    status = store_.Commit(txn);
  }
  if (!status.ok()) hooks_.fatal(status);
  ++commits_;
  ReachFaultPoint(FaultPoint::kAfterCommit);
  if (corrects) ReachFaultPoint(FaultPoint::kAfterCorrectionCommit);
}

}  // namespace tp::loop
