#include "backends/local/rank_tool.h"

#include <string_view>

#include <fmt/format.h>

#include "base/fault_point.h"
#include "base/status.h"
#include "base/subprocess.h"
#include "launch/engine_call.h"

namespace tp::local {
namespace {

// Exit codes of tp-rank, docs/launch-contract.md.
constexpr int kDone = 0;
constexpr int kTreeNotGone = 1;
constexpr int kProcessGone = 3;
constexpr int kNoRecord = 4;
constexpr int kRunnerAlive = 6;
constexpr int kUsage = 64;
constexpr int kStorage = 75;

// What the tool said, on one line.
std::string Words(const CommandResult& result) {
  std::string words = result.err;
  while (!words.empty() && words.back() == '\n') words.pop_back();
  if (!words.empty()) return words;
  return result.term_signal != 0 ? fmt::format("killed by signal {}", result.term_signal)
                                 : fmt::format("exit {}", result.exit_code);
}

RankTool::Reaped Judge(const absl::StatusOr<CommandResult>& result) {
  if (absl::IsDeadlineExceeded(result.status())) return RankTool::Reaped::kNotGone;
  if (!result.ok()) return RankTool::Reaped::kUndecided;
  switch (result->exit_code) {
    case kDone:
      return RankTool::Reaped::kGone;
    case kTreeNotGone:
      return RankTool::Reaped::kNotGone;
    case kRunnerAlive:
      return RankTool::Reaped::kRunnerAlive;
    default:
      return RankTool::Reaped::kUndecided;
  }
}

}  // namespace

absl::Status RankTool::Check(absl::Time deadline) const {
  TP_ASSIGN_OR_RETURN(const CommandResult result,
                      RunCommand({.argv = {path_, "version"}, .env = {"LC_ALL=C"}, .stdin_bytes = {}}, deadline));
  if (result.exit_code == kDone && result.out == "tp-rank 1\n") return absl::OkStatus();
  return FailedPrecondition("{} is not the tp-rank of this tpd ({}): install both from one build", path_,
                            result.out.empty() ? Words(result) : result.out.substr(0, 80));
}

LaunchResult RankTool::Launch(const std::string& key, const std::string& nonce, std::string plan,
                              const std::string& cgroup, absl::Time deadline) const {
  std::vector<std::string> argv = {path_, "launch"};
  if (!cgroup.empty()) argv.insert(argv.end(), {"--cgroup", cgroup});
  const absl::StatusOr<CommandResult> result =
      RunCommand({.argv = std::move(argv),
                  .env = {"LC_ALL=C", fmt::format("{}{}/{}", kLaunchMark, key, nonce)},
                  .stdin_bytes = std::move(plan)},
                 deadline);
  if (absl::IsDeadlineExceeded(result.status())) return LaunchIndeterminate{std::string(Message(result.status()))};
  if (!result.ok()) return LaunchRefused{std::string(Message(result.status()))};
  switch (result->exit_code) {
    case kDone:
      return LaunchAccepted{};
    case kUsage:
      return LaunchRejected{LaunchRejected::Kind::kEngine, Words(*result)};
    case kStorage:  // the launcher starts every rank or none
      return LaunchRefused{fmt::format("this machine could not start the processes: {}", Words(*result))};
    default:
      return LaunchIndeterminate{fmt::format("tp-rank launch ended unexpectedly: {}", Words(*result))};
  }
}

absl::Status RankTool::Signal(const std::string& attempt_dir, int pool, int rank, StopLevel level,
                              absl::Time deadline) const {
  const Command command = {
      .argv = {path_, "signal", attempt_dir, std::to_string(pool), std::to_string(rank), launch::SignalWord(level)},
      .env = {"LC_ALL=C"},
      .stdin_bytes = {}};
  ReachFaultPoint(FaultPoint::kBeforeRankSignal);
  TP_ASSIGN_OR_RETURN(const CommandResult result, RunCommand(command, deadline));
  ReachFaultPoint(FaultPoint::kAfterRankSignal);
  switch (result.exit_code) {
    case kDone:
    case kProcessGone:
    case kNoRecord:
      return absl::OkStatus();
    default:
      return Unavailable("cannot signal rank {}-{} of {}: {}", pool, rank, attempt_dir, Words(result));
  }
}

RankTool::Reaped RankTool::Reap(const std::string& attempt_dir, int pool, int rank, absl::Time deadline) const {
  ReachFaultPoint(FaultPoint::kBeforeReap);
  const Reaped reaped =
      Judge(RunCommand({.argv = {path_, "reap", attempt_dir, std::to_string(pool), std::to_string(rank)},
                        .env = {"LC_ALL=C"},
                        .stdin_bytes = {}},
                       deadline));
  ReachFaultPoint(FaultPoint::kAfterReap);
  return reaped;
}

RankTool::Reaped RankTool::CheckGone(const std::string& attempt_dir, int pool, int rank, absl::Time deadline) const {
  return Judge(RunCommand({.argv = {path_, "reap", "--check", attempt_dir, std::to_string(pool), std::to_string(rank)},
                           .env = {"LC_ALL=C"},
                           .stdin_bytes = {}},
                          deadline));
}

}  // namespace tp::local
