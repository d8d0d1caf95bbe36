// Lists of runs, page by page, and what their owner has in use.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cli/client.h"
#include "tp/v1/run.pb.h"

namespace tp::cli {

struct ListFlags {
  bool all_users = false;
  std::string user;  // empty: oneself
  std::string project;
  std::vector<std::string> states;
  std::vector<std::string> labels;  // `key=value`
  // Unfinished runs and those that ended after this; empty: all.
  std::string since;
  int64_t limit = 50;    // 0: none
  bool removed = false;  // tombstones as well
};

struct RunList {
  std::string owner;          // empty: everyone's
  std::vector<v1::Run> runs;  // newest first, secrets masked
  bool more = false;          // older ones were left out
};

absl::StatusOr<RunList> ListRuns(Client& client, const ListFlags& flags, absl::Time now);

// In any case; INVALID_ARGUMENT names the flag and what exists.
absl::StatusOr<v1::RunState> ParseRunState(std::string_view text, std::string_view what);

struct UseSummary {
  int64_t cards = 0;
  int64_t live_jobs = 0;
  int64_t queued = 0;
  int64_t paused = 0;
};

UseSummary SummarizeUse(const std::vector<v1::Run>& runs);

// `alice: 16 cards in use by 1 job; 2 queued, 0 paused`
std::string UseSentence(std::string_view owner, const UseSummary& use);

}  // namespace tp::cli
