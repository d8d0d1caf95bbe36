// Following a run to its end. Ctrl-C ends the following, never the run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cli/context.h"
#include "cli/exit_codes.h"
#include "tp/v1/run.pb.h"

namespace tp::cli {

// NOT_FOUND names the run. Secrets are masked.
absl::StatusOr<v1::Run> FetchRun(Client& client, const std::string& run);

struct WaitOptions {
  std::optional<v1::RunState> until;  // else: the run's end
  absl::Time deadline = absl::InfiniteFuture();
};

struct WaitResult {
  v1::Run run;  // as last seen
  ExitCode code = ExitCode::kOk;
};

absl::StatusOr<WaitResult> WaitForRun(Context& context, const std::string& run, const WaitOptions& options);

// What a wait for `until` makes of a run in `state`; nothing: wait on. Pure.
std::optional<ExitCode> WaitVerdict(v1::RunState state, std::optional<v1::RunState> until);

struct LogOptions {
  std::vector<std::string> ranks;  // as ParseRanks names them; empty: the first
  int32_t step = 0;                // 0: all; with an attempt or a tail the newest
  int32_t attempt = 0;             // 0: the newest
  int64_t tail_lines = -1;         // negative: everything
  bool follow = false;
  bool system = false;
};

// The log's bytes to stdout as they are. kOk, or kInterrupted.
absl::StatusOr<ExitCode> PrintLog(Context& context, const std::string& run, const LogOptions& options);

}  // namespace tp::cli
