// Ctrl-C while a run is followed ends the following, not the process, so that `tp` can say that the
// job goes on. Outside of this scope Ctrl-C does what it always does.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

#include <grpcpp/client_context.h>

#include "absl/time/time.h"
#include "base/fd.h"

namespace tp::cli {

// At most one at a time. Its own thread turns the signal into a cancelled call.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  bool interrupted() const;

  // The call to cancel, until Forget; at once if the signal has come already. `context` outlives that.
  void Watch(grpc::ClientContext* context);
  void Forget();

  // False if cut short by the signal.
  bool Sleep(absl::Duration duration);

 private:
  void AwaitSignal();

  UniqueFd read_end_;
  UniqueFd write_end_;
  mutable std::mutex mutex_;
  std::condition_variable signalled_;
  bool interrupted_ = false;                // guarded by mutex_
  grpc::ClientContext* watched_ = nullptr;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace tp::cli
