// What a change of rules would do at once, were it made now (DESIGN 3, `--dry-run`): played by another planner,
// so that the owner of the one that counts gives an image of it and nothing else. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "core/gates.h"
#include "core/quota.h"
#include "core/registry.h"
#include "core/step.h"
#include "core/windows.h"
#include "plan/image.h"

namespace tp::plan {

// What admins change of the rules by which steps start.
struct Change {
  std::shared_ptr<const core::Registry> registry;  // null: it stays
  std::vector<int64_t> dropped_rules;
  std::vector<core::QuotaRule> put_rules;
  core::HeldOpen held_open;
};

// A step outside the queue that a change may reach. Those that end anyway are left out.
struct Beside {
  enum class State : uint8_t { kRunning, kPending, kPaused, kPausedByWindow };
  core::StepRef step;
  State state = State::kRunning;
  core::ResolvedShape hours;          // of one with an attempt: its pools' series and profiles, nothing else
  std::vector<std::string> profiles;  // of one without
};

struct WhatIf {
  Image image;
  std::vector<Beside> beside;
  Change change;
  absl::Time now;
};

// In the order in which they are told.
enum class EffectKind : uint8_t {
  kReleased,   // starts
  kHeld,       // a rule that it met holds it: HELD, WINDOW or a quota
  kPaused,     // runs, and its window is closed
  kWithdrawn,  // likewise, and its ranks are not up yet
  kResumed,    // its window is open: it goes back to the queue
  kOpened,     // no rule holds it any more, it waits for cards or its turn
  kReshaped,   // it will launch in another shape, environment or place
};

struct Effect {
  EffectKind kind = EffectKind::kReleased;
  core::StepRef step;
  std::optional<core::GateKind> gate;  // that holds it, or at which it waits then
  std::string sentence;
};

// Somebody would hold more than the limit.
struct OverQuota {
  std::string user;
  std::string what;  // gpus, jobs, or `gpus of h200`
  int64_t used = 0;
  int64_t limit = 0;
};

struct Forecast {
  std::map<EffectKind, int64_t> counts;  // of all
  std::vector<Effect> effects;           // by kind, then by run; at most as many as asked for
  std::vector<OverQuota> over;           // by user
};

// What follows from the change and would not without it: at once, before anything that runs has ended.
Forecast Foresee(const WhatIf& what_if, size_t most_effects);

}  // namespace tp::plan
