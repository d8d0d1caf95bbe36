// Which bytes of which logs a reader gets, in which order: the steps of a run and their attempts one after
// another, the ranks of an attempt in turn. Knows nothing of gRPC. Blocking I/O; used by one thread at a time.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "api/rank_log.h"
#include "core/launch_plan.h"
#include "core/run.h"

namespace tp::api {

struct LogSelection {
  int step = 0;                         // counted from 1; 0: all, or the newest with an attempt, see log.proto
  int attempt = 0;                      // 0: the newest
  std::vector<std::string> ranks = {};  // `<pool>-<rank>`; empty: 0-0; `*` alone: all
  int64_t tail_lines = -1;              // negative: everything
  bool follow = false;
  bool system = false;
};

// INVALID_ARGUMENT for ranks that are not `<pool>-<rank>` or `*`, and for negative numbers.
absl::Status CheckLogSelection(const LogSelection& selection);

struct LogPiece {
  std::string rank;
  int step = 0;           // counted from 1
  std::string step_name;  // where there are several, and none was asked for
  int attempt = 0;
  LogBytes bytes;
};

class LogFollower {
 public:
  LogFollower(core::LaunchLayout layout, LogSelection selection);

  // The run as committed; again after each change of it. NOT_FOUND: no such step, attempt or log.
  absl::Status Update(core::RunWithSteps run);

  // The next piece, or nothing for now. Whether there will be more is known from the run as last
  // updated, so: Update, then Next until it has nothing, then finished().
  absl::StatusOr<std::optional<LogPiece>> Next();

  // Everything that was asked for has been read.
  bool finished() const { return finished_; }

 private:
  struct Place {
    int step = 0;  // index
    int attempt = 0;
    bool operator==(const Place&) const = default;
  };
  struct RankState {
    std::string rank;
    RankLog log;
    int64_t offset = 0;
  };

  absl::StatusOr<std::optional<Place>> FirstPlace() const;
  absl::StatusOr<std::optional<Place>> PlaceIn(int step) const;
  bool all_steps() const { return selection_.step == 0 && selection_.attempt == 0 && selection_.tail_lines < 0; }
  std::optional<Place> NextPlace() const;
  bool IsOver(const Place& place) const;
  bool RunIsOver() const;
  void Enter(const Place& place);
  absl::Status OpenRanks();
  absl::StatusOr<std::vector<std::string>> RankNames(const Directory& directory) const;
  absl::StatusOr<std::optional<LogPiece>> ReadRanks();
  std::string Suffix() const;

  const core::LaunchLayout layout_;
  const LogSelection selection_;
  core::RunWithSteps run_;
  std::optional<Place> place_;
  std::map<int, int> entered_;                  // by step, the last attempt
  bool tail_first_ = true;                      // the tail is of the first attempt read
  std::shared_ptr<const Directory> directory_;  // of the attempt, once it exists
  std::vector<RankState> ranks_;
  size_t next_rank_ = 0;
  bool finished_ = false;
};

}  // namespace tp::api
