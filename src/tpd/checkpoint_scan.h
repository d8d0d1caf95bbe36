// Looks for the newest checkpoint of every run that runs or is paused (for `tp show`, what a pause cost, and the
// warning before a window closes), every so often, on a thread of its own: a storage that hangs holds up nothing
// else. Tasks of an array share their output, so that nobody could tell whose a checkpoint is: they are left out.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/checkpoint.h"
#include "core/launch_plan.h"
#include "core/run.h"
#include "loop/loop.h"

namespace tp::tpd {

// The functions are called on the scan's thread.
struct CheckpointScanOptions {
  absl::Duration interval = absl::Minutes(1);  // from the end of a round to the next
  core::LaunchLayout layout;
  std::function<absl::Time()> now;
  std::function<absl::StatusOr<std::vector<core::RunWithSteps>>()> runs;  // as stored
  std::function<void(loop::CheckpointsSeen)> found;
};

class CheckpointScan {
 public:
  // The first round begins at once.
  explicit CheckpointScan(CheckpointScanOptions options);
  // Ends a round under way at its next file.
  ~CheckpointScan();
  CheckpointScan(const CheckpointScan&) = delete;
  CheckpointScan& operator=(const CheckpointScan&) = delete;

  // Something was paused: it is looked at now. Thread-safe.
  void Wake();

 private:
  void Work();
  enum class Which { kAll, kEnded };
  absl::Status Round(Which which);
  bool IsDue(const core::Step& step, Which which) const;
  bool Stopped();
  std::optional<core::Checkpoint> NewestOf(const core::RunWithSteps& run, const core::Step& step);

  const CheckpointScanOptions options_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopped_ = false;                               // guarded by mutex_
  bool woken_ = false;                                 // guarded by mutex_
  std::set<std::pair<core::StepRef, int32_t>> ended_;  // attempts looked at after their end; the scan's thread only
  std::thread thread_;
};

// What the last lines of a metrics file say: `{"checkpoint": "step-500", "time": 1764547200.5}`. A time after `latest`
// is none: it would hide all that follow.
std::optional<core::Checkpoint> CheckpointInMetrics(std::string_view lines, absl::Time latest);

}  // namespace tp::tpd
