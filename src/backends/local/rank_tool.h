// Calls of the runner's command line: `tp-rank launch`, `signal` and `reap`. Thread-safe; each call
// blocks until the tool ends or `deadline`.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "tp/attempt.h"

namespace tp::local {

// Every process that a launch call starts carries this variable with `<key>/<nonce>` in its environment
// as /proc shows it, the runners all their life (they are forked, not executed), so that launches under
// way can be found. The job's own environment is another one.
inline constexpr char kLaunchMark[] = "TP_LAUNCH_MARK=";

class RankTool {
 public:
  explicit RankTool(std::string path) : path_(std::move(path)) {}

  // Whether the binary at `path` is a tp-rank that speaks this contract.
  absl::Status Check(absl::Time deadline) const;

  // The runners go into `cgroup`, so that the end of tpd's own group is not theirs; empty: they stay in it.
  LaunchResult Launch(const std::string& key, const std::string& nonce, std::string plan, const std::string& cgroup,
                      absl::Time deadline) const;

  // OK also where the rank has not started or is gone.
  absl::Status Signal(const std::string& attempt_dir, int pool, int rank, StopLevel level, absl::Time deadline) const;

  enum class Reaped { kGone, kNotGone, kRunnerAlive, kUndecided };
  // Ends what is left of a rank whose runner is gone.
  Reaped Reap(const std::string& attempt_dir, int pool, int rank, absl::Time deadline) const;
  // The same without ending anything.
  Reaped CheckGone(const std::string& attempt_dir, int pool, int rank, absl::Time deadline) const;

 private:
  std::string path_;
};

}  // namespace tp::local
