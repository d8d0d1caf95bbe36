// Everything that can happen to a step. A new alternative fails to compile until the table
// (core/table.cc) and every visitor know it. Pure values.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/time/time.h"
#include "core/state.h"
#include "core/step.h"
#include "tp/attempt.h"
#include "tp/observation.h"

namespace tp::core {

// Users, admins, windows.
struct StopRequested {};
struct PauseRequested {
  Holder by = Holder::kOwner;
  absl::Duration grace;  // between the warning and TERM
};
struct ResumeRequested {
  Holder by = Holder::kOwner;
  bool snapshot_available = true;
};
struct RetryRequested {
  bool snapshot_available = true;
};

// The planner: all gates are open and the cards are taken.
struct Admitted {
  std::string key;
  std::string nonce;
  ResolvedShape shape;
  std::vector<PoolPlacement> placement;
};
// The step it waits for ended so that this one can never run.
struct DependencyFailed {
  std::string sentence;
};

// Answers of the backend. LaunchAccepted etc. are those of <tp/attempt.h>.
using LaunchAnswered = LaunchResult;
using FenceAnswered = FenceResult;
struct Observed {
  Observation observation;
  bool cards_watched = false;  // its nodes are looked at: before an end is named, one more look can be asked for
};
// Its nodes' cards were looked at.
struct CardsLooked {
  absl::Time began;               // the look, on tpd's clock
  std::vector<CardFault> faults;  // of cards of the attempt's, that are not known of it yet
};
// An admin has seen to a card and put it back into service.
struct CardPutBack {
  std::string node;
  int card = 0;
};

// A deadline of the step's own may have passed: signals to escalate, a fence to try again.
struct TimerFired {};

using Event = std::variant<StopRequested, PauseRequested, ResumeRequested, RetryRequested, Admitted, DependencyFailed,
                           LaunchAnswered, FenceAnswered, Observed, TimerFired, CardsLooked, CardPutBack>;

// One for each alternative of Event, in order.
enum class EventKind : uint8_t {
  kStop,
  kPause,
  kResume,
  kRetry,
  kAdmitted,
  kDependencyFailed,
  kLaunchAnswered,
  kFenceAnswered,
  kObserved,
  kTimer,
  kCardsLooked,
  kCardPutBack,
};
inline constexpr int kEventKindCount = 12;
static_assert(std::variant_size_v<Event> == kEventKindCount);

inline constexpr std::array<std::string_view, kEventKindCount> kEventNames = {
    "stop",           "pause",    "resume", "retry",           "admitted",     "dependency failed", "launch answered",
    "fence answered", "observed", "timer",  "cards looked at", "card put back"};

inline EventKind KindOf(const Event& event) { return static_cast<EventKind>(event.index()); }
constexpr std::string_view Name(EventKind kind) { return kEventNames[static_cast<size_t>(kind)]; }
// Requests of people; refused with FAILED_PRECONDITION where the table has no row for them.
constexpr bool IsRequest(EventKind kind) { return kind <= EventKind::kRetry; }

// --- Effects --------------------------------------------------------------------------------------
// What a transition asks of the outside. All but SettleMeter become outbox rows of the same
// transaction: delivered at least once after the commit, idempotent. Launch is delivered at most once:
// an undelivered one found at start is answered LaunchIndeterminate by the recovery.

struct LaunchAttempt {};
struct FenceAttempt {};
struct SignalAttempt {
  StopLevel level = StopLevel::kTerm;
  bool operator==(const SignalAttempt&) const = default;
};
struct RemoveAttempt {};
// The attempt's metered interval is final: write its ledger rows. `ranks` are those that it was closed by.
struct SettleMeter {
  Meter meter;
  std::vector<RankObservation> ranks;
};

using Effect = std::variant<LaunchAttempt, FenceAttempt, SignalAttempt, RemoveAttempt, SettleMeter>;

}  // namespace tp::core
