// Tells receivers what becomes of runs. Follows the changes that the store keeps, remembers in its outbox what is
// owed, and delivers it at least once: a message has the same id at every try, also after tpd was killed.
//
// Threads: one that follows, and for each receiver its own, so that one that hangs delays no other. None is the
// loop's; nothing here can hold it up.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/fd.h"
#include "base/random.h"
#include "notify/channel.h"
#include "notify/endpoints.h"
#include "notify/outbox.h"
#include "notify/status.h"
#include "store/store.h"

namespace tp::notify {

struct NotifierOptions {
  std::string path;  // of the outbox
  std::string deployment;
  std::function<absl::Time()> now;  // thread-safe
  uint64_t seed = 0;                // of the pauses between tries
  std::function<std::unique_ptr<Channel>(const Endpoint&)> make_channel = MakeChannel;
};

class Notifier {
 public:
  // `reader` outlives it. A first start begins with what happens from now on. Nothing is followed or sent before the
  // first SetEndpoints.
  static absl::StatusOr<std::unique_ptr<Notifier>> Start(NotifierOptions options, store::Reader& reader);

  // Tries under way are broken off; what was not delivered waits for the next start.
  ~Notifier();
  Notifier(const Notifier&) = delete;
  Notifier& operator=(const Notifier&) = delete;

  // After a commit. Thread-safe, does not block.
  void Wake() const;

  // From now on. Thread-safe; returns when nothing is sent any more the old way.
  void SetEndpoints(const Endpoints& endpoints);

  // By name: those that are configured, and those for which messages came to be. Thread-safe.
  absl::StatusOr<std::vector<ReceiverStatus>> Status();

 private:
  struct Worker;

  Notifier(NotifierOptions options, store::Reader& reader, std::unique_ptr<Outbox> outbox, UniqueFd wake,
           UniqueFd stop);

  void Follow();
  absl::StatusOr<bool> FollowSome();
  void GiveUpStrays();
  void Pause(absl::Duration time) const;
  bool stopping() const;

  void StartMissingWorkers();
  void End(const std::vector<std::unique_ptr<Worker>>& workers);
  void Work(Worker& worker);
  std::optional<Pending> Take(Worker& worker);
  std::optional<Pending> FirstUnclaimed(const std::string& receiver);
  void Finish(Worker& worker, const Pending& pending, const TryResult& result);
  void Report(Worker& worker, const Pending& pending, const Verdict& verdict, const TryResult& result) const;
  void LogOnce(const absl::Status& status);

  const NotifierOptions options_;
  store::Reader& reader_;
  const UniqueFd wake_;  // eventfds
  const UniqueFd stop_;
  int64_t followed_ = 0;      // the following thread's; the outbox learns it when there is something to keep
  absl::Time strays_looked_;  // the following thread's

  std::mutex endpoints_mutex_;  // one change of the endpoints at a time; before mutex_

  std::mutex mutex_;
  std::condition_variable changed_;               // something to send, or a worker is to end
  const std::unique_ptr<Outbox> outbox_;          // guarded by mutex_
  Random random_;                                 // guarded by mutex_
  std::set<int64_t> claimed_;                     // guarded by mutex_: what is being sent
  Endpoints endpoints_;                           // guarded by mutex_
  std::string last_fault_;                        // guarded by mutex_
  std::vector<std::unique_ptr<Worker>> workers_;  // guarded by endpoints_mutex_
  std::thread follower_;
};

}  // namespace tp::notify
