// What users were told: answers that left the server. From then on it must stay true, whatever happens
// to tpd. Commands are ordered by when they reached the loop, for a later one may undo an earlier one.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/run.h"
#include "core/state.h"
#include "loop/commands.h"
#include "sim/journal.h"

namespace tp::sim {

enum class Ask : uint8_t { kSubmit, kStop, kPause, kResume, kRetry };
constexpr std::string_view kAskNames[] = {"submit", "stop", "pause", "resume", "retry"};

class Promises {
 public:
  explicit Promises(Journal& journal) : journal_(journal) {}

  // A command reaches the loop; the number orders it among the others.
  int64_t Sent(Ask ask, int64_t run, const std::string& request_id);
  // Its answer was OK. `order`: of this very command; none where the answer was remembered from before.
  void Submitted(const std::string& request_id, int64_t run);
  void Kept(Ask ask, int64_t run, core::Holder by, const std::string& request_id, std::optional<int64_t> order);

  // Whether a stop was promised and nobody asked for a retry since.
  bool Stopped(int64_t run) const;

  // The run as the loop has it now.
  void Check(const core::RunWithSteps& run) const;
  const std::map<std::string, int64_t>& submitted() const { return submitted_; }

 private:
  struct PerRun {
    std::optional<int64_t> stopped;
    std::map<core::Holder, int64_t> paused;
    int64_t last_retry = -1;
    int64_t last_resume = -1;
  };

  void CheckStep(const PerRun& promised, const core::Step& step) const;

  Journal& journal_;
  int64_t next_ = 0;
  std::map<std::string, int64_t> first_sent_;  // by request id
  std::set<std::string> kept_;                 // request ids whose answer left already
  std::map<std::string, int64_t> submitted_;
  std::map<int64_t, PerRun> runs_;
};

}  // namespace tp::sim
