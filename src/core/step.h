// The values that the loop owns for every step: what was asked (StepSpec), where it stands (Step) and
// its live attempt (Attempt). Pure, persisted by the store field by field. Times are tpd's real time
// unless the name says otherwise.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/boxed.h"
#include "core/ids.h"
#include "core/state.h"
#include "tp/launch.h"
#include "tp/observation.h"

namespace tp::core {

enum class AfterWhen : uint8_t { kSuccess, kFailure, kAlways };

// The step this one waits for, of its own run (DESIGN 8).
struct After {
  int32_t step = 0;
  AfterWhen when = AfterWhen::kSuccess;
  bool operator==(const After&) const = default;
};

// What was asked for a step; never changes after submission but by `tp update`.
struct StepSpec {
  std::string name;
  std::vector<std::string> argv;
  std::vector<std::string> profiles;                // the --profile flags as typed
  std::map<std::string, std::string> env;           // tp.yaml
  std::map<std::string, std::string> explicit_env;  // --env
  std::string image;
  std::optional<After> after;
  std::optional<absl::Duration> time_limit;
  std::optional<absl::Duration> pending_timeout;
  std::optional<absl::Duration> start_timeout;
  std::optional<int32_t> user_retries;            // may only lower the deployment's budget
  std::optional<int32_t> infrastructure_retries;  // likewise
  std::optional<int32_t> array_index;             // of an array's task, see core/array.h
  bool operator==(const StepSpec&) const = default;
};

// A pool as the resource flag resolved it, before cards are chosen.
struct PoolShape {
  std::vector<std::string> roles;
  std::string series;
  std::string profile;
  int64_t nodes = 0;
  int gpus_per_node = 0;                              // cards used on each node; 0 on cpu series
  std::map<std::string, std::string> env;             // series, then profile
  std::map<std::string, std::string> locked_env;      // of the series
  std::map<std::string, std::string> overrides_json;  // framework -> JSON
  std::map<std::string, std::string> overrides_env;   // TP_OVERRIDES_<FRAMEWORK> -> text in its style
  NodeDemand demand;                                  // of each of its nodes
  bool operator==(const PoolShape&) const = default;

  int64_t cards() const { return nodes * gpus_per_node; }
};

// What a step's flags come to under one version of the registry.
struct ResolvedShape {
  std::vector<PoolShape> pools;
  std::string executor;
  std::string executor_config;  // a JSON object
  std::string backend;
  std::vector<std::string> notes;  // what submit says: replaced variables, a total without an entry, ...
  bool operator==(const ResolvedShape&) const = default;

  int64_t cards() const;
};

// --- Attempt --------------------------------------------------------------------------------------

// How far the launch call has come.
enum class Handover : uint8_t { kSending, kIndeterminate, kAccepted };

// Why an attempt is being brought to its end. The first cause whose signal was sent names the end;
// only a stop overrides it (DESIGN 4).
enum class EndCause : uint8_t {
  kFinished,    // every rank ended 0, unsignalled
  kRankFailed,  // a rank's record says non-zero, unsignalled
  kEvicted,     // TERM that tpd did not send
  kRankLost,    // a tree is gone and left no end record
  kEngine,      // the engine explains the end (node lost, preempted, ...)
  kStop,
  kPause,
  kWindow,  // a window closed before any rank owned it: back to QUEUED
  kTimeLimit,
  kStartTimeout,
  kPendingTimeout,
  kRejected,  // the engine refused for good
  kRefused,   // the engine refused for now
  kAbsent,    // verified absent before it ran
};
inline constexpr int kEndCauseCount = 14;
std::string_view Name(EndCause cause);

enum class SignalSent : uint8_t { kNone, kWarn, kTerm, kKill };

// Fencing, for an attempt that no rank is known to own (DESIGN 5.4).
enum class FenceState : uint8_t { kNotAsked, kAsked, kWon };

struct Ending {
  EndCause cause = EndCause::kFinished;
  std::optional<Failure> failure;  // what FAILED will say, if it comes to that
  SignalSent sent = SignalSent::kNone;
  FenceState fence = FenceState::kNotAsked;
  std::optional<absl::Time> escalate_at;  // next signal, or next try of the fence
  bool operator==(const Ending&) const = default;
};

// The interval in which the attempt is metered (DESIGN 7).
struct Meter {
  HostStamp opened;
  absl::Time seen_at;                     // when tpd saw it, on tpd's clock: sightings count from here
  std::optional<int64_t> closed_unix_us;  // on the same clock as opened.unix_us
  bool flagged = false;                   // closed without an end record of every rank
  std::string evidence;
  bool operator==(const Meter&) const = default;
};

// One of an attempt's own cards that was found broken after its launch.
struct CardFault {
  std::string node;
  int card = 0;
  std::string why;
  bool operator==(const CardFault&) const = default;
};

// What was last seen. Not history: kept so that `last seen` and deadlines are honest.
struct Sight {
  std::optional<absl::Time> last_seen;      // last Present or Absent; at first its creation
  std::optional<absl::Time> last_alive;     // last Present with a living process of a rank
  std::optional<absl::Time> unknown_since;  // set while the newest observation is Unknown
  std::string unknown_why;
  std::string engine_reason;
  int32_t absent_count = 0;
  std::optional<absl::Time> absent_since;
  absl::Duration pending;   // time seen without its cards, for pending_timeout
  absl::Duration starting;  // time seen with its cards before RUNNING, for start_timeout
  std::vector<CardFault> card_faults = {};
  std::optional<absl::Time> look_asked = std::nullopt;  // at its cards, before its end is named; until it has come
  bool operator==(const Sight&) const = default;
};

struct Attempt {
  int32_t number = 0;
  std::string key;
  std::string nonce;
  absl::Time created_at;
  ResolvedShape shape;                   // frozen
  std::vector<PoolPlacement> placement;  // frozen
  Handover handover = Handover::kSending;
  Claim claim = Claim::kNone;
  std::vector<RankObservation> ranks;    // merged; records never disappear once read
  std::optional<absl::Time> granted_at;  // cards given; start_timeout counts from here
  std::optional<Meter> meter;            // set once RUNNING was reached
  std::optional<Ending> ending;
  EngineEnd engine_end = EngineEnd::kNone;
  bool freed = false;  // nothing is left of it, verified (DESIGN 5.6)
  Sight sight;
  bool operator==(const Attempt&) const = default;

  bool owned() const { return claim == Claim::kThisLaunch || claim == Claim::kOtherLaunch; }
  int64_t cards() const;
};

// --- Step -----------------------------------------------------------------------------------------

struct Hold {
  bool owner = false;
  bool admin = false;
  std::string shape;  // why the shape no longer resolves; empty: it does
  bool operator==(const Hold&) const = default;

  bool any() const { return owner || admin || !shape.empty(); }
};

// An attempt that is over, for `tp show`.
struct PastAttempt {
  int32_t number = 0;
  absl::Time created_at;
  absl::Time ended_at;
  JobState outcome = JobState::kFailed;  // QUEUED: relaunched, retried or resumed
  std::optional<Failure> failure;
  std::string exit;  // `exit 0`, `rank 1: killed by SIGKILL`, ...
  std::string backend;
  std::vector<std::string> nodes;
  int64_t cards = 0;
  int64_t metered_ms = 0;
  bool operator==(const PastAttempt&) const = default;
};

struct Step {
  StepRef ref;
  StepSpec spec;
  JobState state = JobState::kQueued;
  absl::Time created_at;
  absl::Time entered_at;  // when `state` was entered

  // Intent (DESIGN 4), separate from the state: stop beats pause beats retry.
  bool stop_requested = false;
  PauseHolders pause;
  Hold hold;

  int32_t attempts = 0;  // launches so far; the live attempt has this number
  int32_t retry_count = 0;
  int32_t user_retries_used = 0;
  int32_t infrastructure_retries_used = 0;
  int32_t relaunches = 0;                    // in a row, for the backoff
  std::optional<absl::Time> cooldown_until;  // COOLDOWN gate
  std::optional<absl::Time> backoff_until;   // BACKEND gate
  std::string backoff_reason;                // of that, or of an attempt that is being taken back
  std::string avoid_node;                    // the last bad node

  absl::Duration ran;     // RUNNING time that counts against time_limit, past attempts included
  bool ever_ran = false;  // reached RUNNING, in any attempt: only then does it retry by itself

  Boxed<Attempt> attempt;          // exactly in SUBMITTED, PENDING and RUNNING
  std::optional<Failure> failure;  // exactly in FAILED, and in STOPPED by a dependency
  std::string exit;                // how the last attempt ended, in words
  std::vector<PastAttempt> past;
  bool operator==(const Step&) const = default;
};

// Deployment settings that decisions need, as values.
struct Policy {
  absl::Duration stop_grace = absl::Seconds(30);
  absl::Duration pause_grace = absl::Seconds(60);
  absl::Duration kill_repeat = absl::Seconds(10);
  absl::Duration fence_repeat = absl::Seconds(5);
  absl::Duration absent_grace = absl::Seconds(5);
  int32_t absent_confirmations = 2;
  absl::Duration start_timeout = absl::Minutes(10);
  int32_t user_retries = 0;
  int32_t infrastructure_retries = 3;
  absl::Duration retry_cooldown = absl::Seconds(60);
  absl::Duration relaunch_backoff = absl::Seconds(1);
  absl::Duration relaunch_backoff_max = absl::Minutes(10);
  absl::Duration aging = absl::Hours(6);                     // waited for +1 of priority; zero: no aging
  int32_t aging_cap = 20;                                    // the most that aging adds
  absl::Duration default_time_limit = absl::Hours(24 * 30);  // what backfill assumes of a step without one
  bool fair_share = false;
  absl::Duration fair_share_half_life = absl::Hours(24 * 7);
  absl::Duration min_flip = absl::Minutes(10);       // from a window's pause to its resume, at least
  absl::Duration look_patience = absl::Seconds(15);  // how long an end waits for a look at the attempt's cards
  absl::Duration idle_after = absl::Minutes(30);     // cards that compute nothing for so long are shown; zero: never
  bool operator==(const Policy&) const = default;
};

// What a user reads about a step that is neither QUEUED nor over: `RUNNING (ending, exit 0)`,
// `RUNNING, last seen 3m ago: ...`.
std::string StateText(const Step& step, absl::Time now);

}  // namespace tp::core
