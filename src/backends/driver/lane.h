// The threads of one backend and the work that waits for them. Thread-safe.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "backends/driver/driver.h"
#include "backends/driver/guarded_calls.h"
#include "tp/backend.h"

namespace tp::driver {

class Lane : public std::enable_shared_from_this<Lane> {
 public:
  // Sets the backend's wake and begins its threads. They hold the lane, and it the backend, until they end.
  static std::shared_ptr<Lane> Start(const std::string& name, std::shared_ptr<Backend> backend,
                                     std::shared_ptr<Outlet> outlet, const DriverOptions& options);
  ~Lane();

  void Push(int64_t outbox_id, Call call, const AttemptTarget& target);
  void Track(const AttemptTarget& target);
  void Untrack(const std::string& key);
  void Look(const AttemptTarget& target);
  void Wake(const std::string& key);

  void Stop();                         // returns at once
  void AwaitEnd(absl::Time deadline);  // after Stop

 private:
  using Clock = std::chrono::steady_clock;
  using Moment = Clock::time_point;

  struct Task {
    int64_t outbox_id = 0;
    Call call;
    AttemptTarget target;
  };

  struct Tracked {
    AttemptTarget target;
    Moment since;
    Moment next_look;
    bool once = false;       // until the first look, whatever comes of it
    bool woken = false;      // since the last look began
    bool signalled = false;  // by an effect of this lane
    bool ending = false;     // signalled, or seen to end
    std::optional<Observation> last;
    Moment posted_at;
    int unknown_in_a_row = 0;
  };

  // All that concerns one attempt. Busy: a call about it is under way.
  struct Key {
    std::deque<Task> tasks;
    std::optional<Tracked> tracked;
    bool busy = false;
    bool given_up = false;      // busy with a call that nobody waits for any more
    bool alone = false;         // looked at by itself: a look at several did not end, and it may be why
    bool ready = false;         // in ready_
    std::optional<Moment> due;  // in due_
  };

  // A call under way, watched by the supervisor.
  struct Flight {
    std::vector<std::string> keys;
    std::optional<Task> task;  // nothing: an observation
    Moment give_up_at;
    bool given_up = false;
    bool answering = false;  // the supervisor speaks for it
    bool replaced = false;   // another thread took over for the one it holds
  };
  using FlightRef = std::list<Flight>::iterator;

  struct Worker {
    std::thread thread;
    bool ended = false;
  };

  enum class Role { kEffects, kObservations, kSupervisor };

  // Between the backend's wake, which may outlive the lane, and the lane.
  struct WakeGate {
    std::mutex mutex;
    Lane* lane = nullptr;
  };

  Lane(std::string name, std::shared_ptr<Backend> backend, std::shared_ptr<Outlet> outlet,
       const DriverOptions& options);

  void StartThread(Role role);
  void RunEffects();
  void RunObservations();
  void RunSupervisor();

  // With the mutex held.
  FlightRef Begin(std::vector<std::string> keys, std::optional<Task> task, absl::Duration limit);
  void Settle(const std::string& key);
  std::vector<std::string> TakeDue(Moment now);
  std::optional<Moment> NextGiveUp() const;
  Flight* FindOverdue(Moment now);
  Clock::duration IntervalOf(const Tracked& tracked, Moment now);
  bool NoteObservation(Key& key, const Observation& seen, Moment now);
  void JoinEndedWorkers();

  // These are called and left with the mutex held, and let go of it while they call the backend or the
  // loop. The first three say whether the calling thread was replaced and must end.
  using Lock = std::unique_lock<std::mutex>;
  bool PerformTask(Lock& lock, const std::string& key);
  bool ObserveDue(Lock& lock, std::vector<std::string> keys);
  bool Finish(Lock& lock, FlightRef flight);
  void GiveUp(Lock& lock, Flight& flight);
  void Part(Flight& flight);
  bool AnswerWaiting(Lock& lock);  // whether there was anything to answer

  absl::Duration LimitOf(const Call& call) const;

  const std::string name_;
  const std::shared_ptr<Backend> backend_;
  const std::shared_ptr<Outlet> outlet_;
  const DriverOptions options_;
  const std::shared_ptr<WakeGate> gate_ = std::make_shared<WakeGate>();

  std::mutex mutex_;
  std::condition_variable effects_wanted_;
  std::condition_variable look_wanted_;
  std::condition_variable supervise_;
  std::condition_variable answered_;  // by the supervisor
  std::condition_variable worker_ended_;
  std::map<std::string, Key> keys_;
  std::deque<std::string> ready_;  // keys with tasks that are not busy
  std::set<std::pair<Moment, std::string>> due_;
  std::list<Flight> flights_;
  std::list<Worker> workers_;
  std::minstd_rand jitter_;
  int given_up_ = 0;
  Moment supervisor_wakes_at_ = Moment::max();
  bool stopping_ = false;
};

}  // namespace tp::driver
