// One step, one event, one moment: what becomes of it. Pure.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/event.h"
#include "core/step.h"
#include "core/table.h"

namespace tp::core {

// One row of the table that was taken.
struct Taken {
  JobState from;
  JobState to;
  size_t rule = 0;  // index in the table
  std::string note;
};

struct Transition {
  Step next;
  std::vector<Effect> effects;
  std::vector<Taken> taken;  // in order; empty: a late or duplicate event, recorded as such
  bool durable = false;      // something worth a commit has changed
};

// FAILED_PRECONDITION only for a request that is illegal in this state, with a sentence that says why;
// a late or duplicate observation or answer is a no-op, whatever it says.
absl::StatusOr<Transition> Apply(const Table& table, const Step& step, const Event& event, absl::Time now,
                                 const Policy& policy);

// The next moment at which TimerFired can matter to the step.
std::optional<absl::Time> NextTimer(const Step& step);

// The rules that hold in every reachable step (attempt exactly while live, failure exactly in FAILED,
// ...). Returns the first that does not, or an empty string.
std::string BrokenInvariant(const Step& step);

}  // namespace tp::core
