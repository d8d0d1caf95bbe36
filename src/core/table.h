// The state table of DESIGN 4 as data: states, events, guards and effects. docs/states.md and the
// exhaustive test are made from it; Apply runs it. Rows of one (state, event) pair are tried in order,
// the first whose guard holds is taken.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/event.h"
#include "core/step.h"

namespace tp::core {

// What a row's guard reads and its action writes: the step being changed and what has come of it.
struct Change {
  Step step;
  const Event& event;
  absl::Time now;
  const Policy& policy;
  std::vector<Effect> effects;
  std::string note;  // what the event log and a user's answer say
};

// A set of job states.
class StateSet {
 public:
  constexpr StateSet(std::initializer_list<JobState> states) {
    for (JobState state : states) bits_ = static_cast<uint8_t>(bits_ | (1u << static_cast<unsigned>(state)));
  }
  constexpr bool has(JobState state) const { return (bits_ >> static_cast<unsigned>(state)) & 1u; }

 private:
  uint8_t bits_ = 0;
};

enum class Then : uint8_t {
  kDone,
  kAgain,   // the same event is looked at once more in the new state
  kRefuse,  // a request that is illegal here; the action's note says why, nothing changes
};

struct Rule {
  StateSet from;
  EventKind on;
  std::string_view when;  // the guard, in words
  bool (*guard)(const Change&);
  std::optional<JobState> to;  // nothing: the state stays
  std::string_view then;       // the action, in words
  void (*act)(Change&);
  Then then_what = Then::kDone;
};

using Table = std::vector<Rule>;

// The product's table. Built once.
const Table& ProductTable();

}  // namespace tp::core
