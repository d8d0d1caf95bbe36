#include "backends/driver/lane.h"

#include <algorithm>

#include <fmt/format.h>

#include "absl/time/clock.h"
#include "backends/driver/outlet.h"
#include "base/fault_point.h"

namespace tp::driver {
namespace {

// A launch follows its Track at once, and claims follow a launch: the first look waits for them.
constexpr std::chrono::milliseconds kFirstLook(20);
constexpr absl::Duration kLongestWait = absl::Hours(1);

bool IsEnding(const Observation& seen) {
  const Present* present = std::get_if<Present>(&seen);
  if (present == nullptr) return std::holds_alternative<Absent>(seen);
  return std::any_of(present->ranks.begin(), present->ranks.end(),
                     [](const RankObservation& rank) { return rank.ended.has_value() || rank.tree == Tree::kGone; });
}

}  // namespace

std::shared_ptr<Lane> Lane::Start(const std::string& name, std::shared_ptr<Backend> backend,
                                  std::shared_ptr<Outlet> outlet, const DriverOptions& options) {
  std::shared_ptr<Lane> lane(new Lane(name, std::move(backend), std::move(outlet), options));
  lane->gate_->lane = lane.get();
  // No owning pointer: the backend's own thread must never be the one that takes the backend down.
  lane->backend_->SetWake([gate = lane->gate_](const std::string& key) {
    const std::lock_guard lock(gate->mutex);
    if (gate->lane != nullptr) gate->lane->Wake(key);
  });
  const std::lock_guard lock(lane->mutex_);
  for (int i = 0; i < options.effect_threads; ++i) lane->StartThread(Role::kEffects);
  for (int i = 0; i < options.observe_threads; ++i) lane->StartThread(Role::kObservations);
  lane->StartThread(Role::kSupervisor);
  return lane;
}

Lane::Lane(std::string name, std::shared_ptr<Backend> backend, std::shared_ptr<Outlet> outlet,
           const DriverOptions& options)
    : name_(std::move(name)),
      backend_(std::move(backend)),
      outlet_(std::move(outlet)),
      options_(options),
      jitter_(std::random_device{}()) {}

Lane::~Lane() {
  const std::lock_guard lock(gate_->mutex);
  gate_->lane = nullptr;
}

void Lane::StartThread(Role role) {
  workers_.emplace_back();
  Worker& worker = workers_.back();
  worker.thread = std::thread([self = shared_from_this(), role, &worker] {
    switch (role) {
      case Role::kEffects:
        self->RunEffects();
        break;
      case Role::kObservations:
        self->RunObservations();
        break;
      case Role::kSupervisor:
        self->RunSupervisor();
        break;
    }
    const std::lock_guard lock(self->mutex_);
    worker.ended = true;
    self->worker_ended_.notify_all();
  });
}

void Lane::Stop() {
  const std::lock_guard lock(mutex_);
  stopping_ = true;
  effects_wanted_.notify_all();
  look_wanted_.notify_all();
  supervise_.notify_all();
}

void Lane::AwaitEnd(absl::Time deadline) {
  std::list<Worker> ended;
  {
    Lock lock(mutex_);
    const auto all_ended = [this] {
      return std::all_of(workers_.begin(), workers_.end(), [](const Worker& worker) { return worker.ended; });
    };
    const absl::Duration left = std::clamp(deadline - absl::Now(), absl::ZeroDuration(), kLongestWait);
    worker_ended_.wait_for(lock, absl::ToChronoNanoseconds(left), all_ended);
    for (auto worker = workers_.begin(); worker != workers_.end();) {
      const auto next = std::next(worker);
      if (worker->ended) {
        ended.splice(ended.end(), workers_, worker);
      } else if (worker->thread.joinable()) {
        worker->thread.detach();  // it holds the lane until its call returns
      }
      worker = next;
    }
  }
  for (Worker& worker : ended) {
    if (worker.thread.joinable()) worker.thread.join();
  }
}

// --- What is wanted -------------------------------------------------------------------------------

void Lane::Push(int64_t outbox_id, Call call, const AttemptTarget& target) {
  const std::lock_guard lock(mutex_);
  if (stopping_) return;
  keys_[target.key].tasks.push_back({outbox_id, std::move(call), target});
  Settle(target.key);
}

void Lane::Track(const AttemptTarget& target) {
  const std::lock_guard lock(mutex_);
  const Moment now = Clock::now();
  Tracked tracked;
  tracked.target = target;
  tracked.since = now;
  tracked.next_look = now + kFirstLook;
  keys_[target.key].tracked = std::move(tracked);
  Settle(target.key);
}

void Lane::Untrack(const std::string& key) {
  const std::lock_guard lock(mutex_);
  const auto found = keys_.find(key);
  if (found == keys_.end()) return;
  found->second.tracked.reset();
  Settle(key);
}

void Lane::Look(const AttemptTarget& target) {
  const std::lock_guard lock(mutex_);
  Key& key = keys_[target.key];
  if (key.tracked) return;
  Tracked& tracked = key.tracked.emplace(Tracked());
  tracked.target = target;
  tracked.since = Clock::now();
  tracked.next_look = tracked.since;
  tracked.once = true;
  Settle(target.key);
}

void Lane::Wake(const std::string& key) {
  const std::lock_guard lock(mutex_);
  const auto found = keys_.find(key);
  if (found == keys_.end() || !found->second.tracked) return;
  found->second.tracked->woken = true;
  Settle(key);
}

// Puts a key where the threads look for it: effects go before looks, and a busy key is nowhere.
void Lane::Settle(const std::string& name) {
  const auto found = keys_.find(name);
  if (found == keys_.end()) return;
  Key& key = found->second;
  if (key.due) {
    due_.erase({*key.due, name});
    key.due.reset();
  }
  if (key.busy) {
    if (key.given_up && !key.tasks.empty()) supervise_.notify_one();
    return;
  }
  if (!key.tasks.empty()) {
    if (!key.ready) ready_.push_back(name);
    key.ready = true;
    effects_wanted_.notify_one();
    return;
  }
  if (!key.tracked) {
    keys_.erase(found);
    return;
  }
  key.due = key.tracked->woken ? Clock::now() : key.tracked->next_look;
  due_.emplace(*key.due, name);
  if (due_.begin()->second == name) look_wanted_.notify_one();
}

// --- Flights --------------------------------------------------------------------------------------

Lane::FlightRef Lane::Begin(std::vector<std::string> keys, std::optional<Task> task, absl::Duration limit) {
  for (const std::string& key : keys) keys_[key].busy = true;
  const Moment give_up_at = Clock::now() + absl::ToChronoNanoseconds(limit + options_.overrun);
  Flight& flight = flights_.emplace_back();
  flight.keys = std::move(keys);
  flight.task = std::move(task);
  flight.give_up_at = give_up_at;
  if (give_up_at < supervisor_wakes_at_) supervise_.notify_one();
  return std::prev(flights_.end());
}

bool Lane::Finish(Lock& lock, FlightRef flight) {
  // What the supervisor says of this call comes before what is said of the next.
  answered_.wait(lock, [&] { return !flight->answering; });
  if (flight->given_up) --given_up_;
  const bool replaced = flight->replaced;
  const std::vector<std::string> keys = std::move(flight->keys);
  flights_.erase(flight);
  for (const std::string& key : keys) {
    keys_[key].busy = false;
    keys_[key].given_up = false;
    Settle(key);
  }
  return replaced;
}

std::optional<Lane::Moment> Lane::NextGiveUp() const {
  std::optional<Moment> next;
  for (const Flight& flight : flights_) {
    if (!flight.given_up && (!next || flight.give_up_at < *next)) next = flight.give_up_at;
  }
  return next;
}

// --- Effects --------------------------------------------------------------------------------------

absl::Duration Lane::LimitOf(const Call& call) const {
  return std::holds_alternative<LaunchCall>(call) ? options_.launch_limit : options_.order_limit;
}

void Lane::RunEffects() {
  Lock lock(mutex_);
  for (;;) {
    effects_wanted_.wait(lock, [this] { return stopping_ || !ready_.empty(); });
    if (stopping_) return;
    const std::string key = std::move(ready_.front());
    ready_.pop_front();
    if (PerformTask(lock, key)) return;
  }
}

bool Lane::PerformTask(Lock& lock, const std::string& name) {
  Key& key = keys_[name];
  key.ready = false;
  const Task task = std::move(key.tasks.front());
  key.tasks.pop_front();
  const absl::Duration limit = LimitOf(task.call);
  const FlightRef flight = Begin({name}, task, limit);
  lock.unlock();
  loop::EffectResult result = Perform(*backend_, task.call, task.target, absl::Now() + limit);
  lock.lock();
  const bool wanted = !flight->given_up;
  if (Key& after = keys_[name]; after.tracked) {
    after.tracked->signalled = after.tracked->signalled || std::holds_alternative<SignalCall>(task.call);
    after.tracked->next_look = Clock::now() + kFirstLook;
  }
  if (wanted) {
    // Before the key is free again, so that answers and observations keep the order of the calls. From
    // here on the supervisor must not answer as well.
    flight->give_up_at = Moment::max();
    lock.unlock();
    outlet_->Answer(task.outbox_id, std::move(result));
    ReachFaultPoint(FaultPoint::kAnswerPosted);
    lock.lock();
  }
  return Finish(lock, flight);
}

// --- Observations ---------------------------------------------------------------------------------

void Lane::RunObservations() {
  Lock lock(mutex_);
  for (;;) {
    if (stopping_) return;
    std::vector<std::string> keys = TakeDue(Clock::now());
    if (!keys.empty()) {
      if (ObserveDue(lock, std::move(keys))) return;
    } else if (due_.empty()) {
      look_wanted_.wait(lock);
    } else {
      look_wanted_.wait_until(lock, Moment(due_.begin()->first));
    }
  }
}

std::vector<std::string> Lane::TakeDue(Moment now) {
  std::vector<std::string> keys;
  while (!due_.empty() && due_.begin()->first <= now && keys.size() < options_.observe_batch) {
    const std::string name = due_.begin()->second;
    Key& key = keys_[name];
    if (key.alone && !keys.empty()) break;
    due_.erase(due_.begin());
    key.due.reset();
    key.tracked->woken = false;
    keys.push_back(name);
    if (key.alone) break;
  }
  if (!due_.empty() && due_.begin()->first <= now) look_wanted_.notify_one();
  return keys;
}

bool Lane::ObserveDue(Lock& lock, std::vector<std::string> keys) {
  std::vector<AttemptTarget> targets;
  targets.reserve(keys.size());
  for (const std::string& key : keys) targets.push_back(keys_[key].tracked->target);
  const FlightRef flight = Begin(std::move(keys), std::nullopt, options_.observe_limit);
  lock.unlock();
  std::vector<Observation> seen = ObserveAll(*backend_, targets, absl::Now() + options_.observe_limit);
  lock.lock();
  std::vector<size_t> news;
  const Moment now = Clock::now();
  for (size_t i = 0; i < targets.size() && !flight->given_up; ++i) {
    Key& key = keys_[targets[i].key];
    key.alone = false;
    // Tracked anew under another target while it was looked at: that is not what was seen.
    if (!key.tracked || !(key.tracked->target == targets[i])) continue;
    if (NoteObservation(key, seen[i], now)) news.push_back(i);
  }
  if (!news.empty()) {
    flight->give_up_at = Moment::max();
    lock.unlock();
    for (const size_t i : news) outlet_->Observed(targets[i].key, std::move(seen[i]));
    lock.lock();
  }
  return Finish(lock, flight);
}

// Whether it is to be posted.
bool Lane::NoteObservation(Key& key, const Observation& seen, Moment now) {
  if (key.tracked->once) {
    key.tracked.reset();
    return true;
  }
  Tracked& tracked = *key.tracked;
  const bool unknown = std::holds_alternative<Unknown>(seen);
  tracked.unknown_in_a_row = unknown ? tracked.unknown_in_a_row + 1 : 0;
  tracked.ending = tracked.signalled || IsEnding(seen);
  tracked.next_look = now + IntervalOf(tracked, now);
  const bool same = tracked.last && *tracked.last == seen;
  if (same && now - tracked.posted_at < absl::ToChronoNanoseconds(options_.repeat_equal_after)) return false;
  tracked.last = seen;
  tracked.posted_at = now;
  return true;
}

Lane::Clock::duration Lane::IntervalOf(const Tracked& tracked, Moment now) {
  absl::Duration interval = options_.interval;
  if (tracked.unknown_in_a_row > 0) {
    const int doublings = std::min(tracked.unknown_in_a_row - 1, 10);
    interval = std::min(interval * (1 << doublings), options_.unknown_interval_max);
  } else if (tracked.ending || now - tracked.since < absl::ToChronoNanoseconds(options_.young_for)) {
    interval = options_.eager_interval;
  }
  const double factor = std::uniform_real_distribution<double>(0.67, 1.33)(jitter_);
  return std::chrono::duration_cast<Clock::duration>(absl::ToChronoNanoseconds(interval * factor));
}

// --- Supervision ----------------------------------------------------------------------------------

void Lane::RunSupervisor() {
  Lock lock(mutex_);
  while (!stopping_) {
    while (Flight* flight = FindOverdue(Clock::now())) GiveUp(lock, *flight);
    while (AnswerWaiting(lock)) {
    }
    JoinEndedWorkers();
    if (stopping_) return;  // said while the lock was let go
    supervisor_wakes_at_ = NextGiveUp().value_or(Moment::max());
    if (supervisor_wakes_at_ == Moment::max()) {
      supervise_.wait(lock);
    } else {
      supervise_.wait_until(lock, Moment(supervisor_wakes_at_));
    }
  }
}

Lane::Flight* Lane::FindOverdue(Moment now) {
  for (Flight& flight : flights_) {
    if (!flight.given_up && flight.give_up_at <= now) return &flight;
  }
  return nullptr;
}

// The loop hears now what can be said; the late result will be dropped.
void Lane::GiveUp(Lock& lock, Flight& flight) {
  const std::string why = fmt::format("backend {} did not answer in time", name_);
  const bool together = flight.keys.size() > 1;
  flight.given_up = true;
  flight.answering = true;
  ++given_up_;
  std::vector<std::string> unseen;
  for (const std::string& name : flight.keys) {
    Key& key = keys_[name];
    key.given_up = !together;
    const bool looked = !flight.task && key.tracked;
    if (looked && NoteObservation(key, Unknown{why}, Clock::now())) unseen.push_back(name);
  }
  if (given_up_ <= options_.max_given_up) {
    flight.replaced = true;
    StartThread(flight.task ? Role::kEffects : Role::kObservations);
  }
  lock.unlock();
  if (flight.task) outlet_->Answer(flight.task->outbox_id, LostAnswer(flight.task->call, why));
  for (const std::string& name : unseen) outlet_->Observed(name, Unknown{why});
  lock.lock();
  if (together) Part(flight);
  flight.answering = false;
  answered_.notify_all();
}

// One attempt that hangs, as on storage that does, keeps those that were looked at with it from being seen only once.
void Lane::Part(Flight& flight) {
  for (const std::string& name : std::exchange(flight.keys, {})) {
    keys_[name].busy = false;
    keys_[name].alone = true;
    Settle(name);
  }
}

// Nothing may be sent for a key while an earlier call for it hangs.
bool Lane::AnswerWaiting(Lock& lock) {
  std::vector<Task> waiting;
  for (auto& [name, key] : keys_) {
    if (!key.given_up) continue;
    std::move(key.tasks.begin(), key.tasks.end(), std::back_inserter(waiting));
    key.tasks.clear();
  }
  if (waiting.empty()) return false;
  lock.unlock();
  for (const Task& task : waiting) {
    const std::string why = fmt::format("backend {} still hangs in an earlier call for {}", name_, task.target.key);
    outlet_->Answer(task.outbox_id, NotSent(task.call, why));
  }
  lock.lock();
  return true;
}

void Lane::JoinEndedWorkers() {
  std::erase_if(workers_, [](Worker& worker) {
    if (worker.ended && worker.thread.joinable()) worker.thread.join();
    return worker.ended;
  });
}

}  // namespace tp::driver
