// One submission: what its steps share (DESIGN 2), and the word its steps roll up to (DESIGN 8). Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"
#include "core/notice.h"
#include "core/state.h"
#include "core/step.h"

namespace tp::core {

inline constexpr int32_t kDefaultPriority = 50;
inline constexpr int32_t kMaxPriority = 100;

// The word of a run: a job state, or PARTIAL.
enum class RunWord : uint8_t {
  kQueued,
  kSubmitted,
  kPending,
  kRunning,
  kPaused,
  kSucceeded,
  kFailed,
  kStopped,
  kPartial,
};
inline constexpr int kRunWordCount = 9;
std::string_view Name(RunWord word);
std::optional<RunWord> ParseRunWord(std::string_view name);
bool IsTerminal(RunWord word);

// Another run that this one comes after (`tp submit --after`).
struct RunDependency {
  int64_t run = 0;
  std::string id;  // as people name it
  AfterWhen when = AfterWhen::kSuccess;
  std::optional<RunWord> outcome;  // how it ended; absent while it is not over
  bool operator==(const RunDependency&) const = default;
};

struct Run {
  int64_t n = 0;
  std::string slug;
  std::string owner;
  std::string project;
  std::string snapshot_id;
  std::map<std::string, std::string> labels;
  int32_t priority = kDefaultPriority;
  absl::Time created_at;
  bool snapshot_available = true;
  // By `tp rm`: the run stays as a tombstone, its directory goes.
  std::optional<absl::Time> removed_at;
  std::vector<RunDependency> after;  // all of them; its first steps wait
  int32_t array_limit = 0;           // of an array: tasks live at once; 0: all
  std::vector<Notice> notify;
  bool operator==(const Run&) const = default;

  std::string id() const;
};

struct RunWithSteps {
  Run run;
  std::vector<Step> steps;  // by index
  bool operator==(const RunWithSteps&) const = default;
};

// `steps` by index; at least one.
RunWord RollUp(const std::vector<Step>& steps);

}  // namespace tp::core
