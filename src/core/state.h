// The words of DESIGN 4: job states and what they hold, intents, failure kinds. Pure values.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tp::core {

enum class JobState : uint8_t {
  kQueued,
  kSubmitted,
  kPending,
  kRunning,
  kPaused,
  kSucceeded,
  kFailed,
  kStopped,
};
inline constexpr int kJobStateCount = 8;

enum class CardUse : uint8_t { kNone, kReserved, kHeld };

struct StateTraits {
  std::string_view name;
  CardUse cards;
  bool job_slot;
  bool metered;
  bool terminal;
};

inline constexpr std::array<StateTraits, kJobStateCount> kStateTraits = {{
    {"QUEUED", CardUse::kNone, false, false, false},
    {"SUBMITTED", CardUse::kReserved, true, false, false},
    {"PENDING", CardUse::kReserved, true, false, false},
    {"RUNNING", CardUse::kHeld, true, true, false},
    {"PAUSED", CardUse::kNone, false, false, false},
    {"SUCCEEDED", CardUse::kNone, false, false, true},
    {"FAILED", CardUse::kNone, false, false, true},
    {"STOPPED", CardUse::kNone, false, false, true},
}};

constexpr const StateTraits& Traits(JobState state) { return kStateTraits[static_cast<size_t>(state)]; }
constexpr std::string_view Name(JobState state) { return Traits(state).name; }
constexpr bool IsTerminal(JobState state) { return Traits(state).terminal; }
// SUBMITTED, PENDING and RUNNING: the states with an attempt, and no other.
constexpr bool HasAttempt(JobState state) { return Traits(state).job_slot; }
std::optional<JobState> ParseJobState(std::string_view name);

enum class FailureKind : uint8_t {
  kUserExit,
  kUserOom,
  kTimeLimit,
  kEngineRejected,
  kImage,
  kStartTimeout,
  kNodeLost,
  kPreempted,
  kEvicted,
  kGpuLost,
  kStorage,
  kDependency,
  kLost,
};
inline constexpr int kFailureKindCount = 13;

// Which budget an automatic retry is taken from (DESIGN 4).
enum class RetryBudget : uint8_t { kNever, kUser, kInfrastructure };

struct FailureTraits {
  std::string_view name;
  RetryBudget budget;
};

inline constexpr std::array<FailureTraits, kFailureKindCount> kFailureTraits = {{
    {"user_exit", RetryBudget::kUser},
    {"user_oom", RetryBudget::kNever},
    {"time_limit", RetryBudget::kNever},
    {"engine_rejected", RetryBudget::kNever},
    {"image", RetryBudget::kNever},
    {"start_timeout", RetryBudget::kNever},
    {"node_lost", RetryBudget::kInfrastructure},
    {"preempted", RetryBudget::kInfrastructure},
    {"evicted", RetryBudget::kInfrastructure},
    {"gpu_lost", RetryBudget::kInfrastructure},
    {"storage", RetryBudget::kInfrastructure},
    {"dependency", RetryBudget::kNever},
    {"lost", RetryBudget::kInfrastructure},
}};

constexpr const FailureTraits& Traits(FailureKind kind) { return kFailureTraits[static_cast<size_t>(kind)]; }
constexpr std::string_view Name(FailureKind kind) { return Traits(kind).name; }
std::optional<FailureKind> ParseFailureKind(std::string_view name);

// Why a step ended as it did: the kind, and one sentence a user can act on.
struct Failure {
  FailureKind kind = FailureKind::kUserExit;
  std::string sentence;
  bool operator==(const Failure&) const = default;
};

// Who keeps a step paused. Each lifts only its own, an admin any (DESIGN 4).
enum class Holder : uint8_t { kOwner, kAdmin, kWindow };

struct PauseHolders {
  bool owner = false;
  bool admin = false;
  bool window = false;
  bool operator==(const PauseHolders&) const = default;

  bool any() const { return owner || admin || window; }
  void Add(Holder holder);
  // An owner's resume also lifts the window's; an admin's lifts all.
  void Lift(Holder by);
};

}  // namespace tp::core
