// An engine in this process whose truth a test writes: what ranks do, which answers are lost, what
// cannot be reached. Keeps the launch contract's rules (one owner, fence, records) without files or
// processes. Thread-safe.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "tp/backend.h"

namespace tp::fake {

// What a rank does is the value of this variable in its environment; without it, "hold".
//   exit N          starts and exits with N
//   raise N         starts and dies of signal N
//   hold            runs until it is signalled, and dies of TERM
//   trap N          runs until it is signalled, and exits with N on TERM
//   missing         cannot be executed
//   claim           claims and never starts
//   queue           stays in the engine's queue, without a claim, until StartQueued
inline constexpr char kProgramVariable[] = "TP_TEST_PROGRAM";

// How the next launch call of a key is answered, and whether anything came of it.
struct LaunchScript {
  LaunchResult answer = LaunchAccepted{};
  bool arrives = true;
};

class FakeBackend final : public Backend {
 public:
  explicit FakeBackend(std::function<absl::Time()> now, Capabilities capabilities = {.unique_names = true});

  Capabilities capabilities() const override { return capabilities_; }
  absl::Status Validate(const LaunchSpec& spec) const override;
  std::string Render(const LaunchSpec& spec) const override;
  LaunchResult Launch(const LaunchSpec& spec, absl::Time deadline) override;
  std::vector<Observation> Observe(const std::vector<AttemptTarget>& targets, absl::Time deadline) override;
  FenceResult Fence(const AttemptTarget& target, absl::Time deadline) override;
  absl::Status Stop(const AttemptTarget& target, StopLevel level, absl::Time deadline) override;
  absl::Status Remove(const AttemptTarget& target, absl::Time deadline) override;
  absl::StatusOr<std::vector<InventoryItem>> Inventory(absl::Time deadline) override;
  void SetWake(std::function<void(const std::string& key)> wake) override;

  // --- The script -------------------------------------------------------------------------------
  void OnNextLaunch(const std::string& key, LaunchScript script);
  // With a reason: nothing can be observed, asked or ordered until it is set back. Jobs go on.
  void SetUnreachable(std::optional<std::string> why);
  void StartQueued(const std::string& key);
  void EndRank(const std::string& key, int pool, int rank, int code);
  void TermFromOutside(const std::string& key, int pool, int rank);
  void KillRunner(const std::string& key, int pool, int rank);  // the tree goes with it, without a record
  void Vanish(const std::string& key);                          // the engine and its storage forget the attempt
  void SetEngineEnd(const std::string& key, EngineEnd end, std::string reason);

  // --- The witness ------------------------------------------------------------------------------
  // Nonces under which the rank's program ran, in order.
  std::vector<std::string> NoncesThatRan(const std::string& key, int pool, int rank) const;
  int launches(const std::string& key) const;
  std::vector<StopLevel> stops(const std::string& key) const;
  bool removed(const std::string& key) const;
  std::string EnvSeen(const std::string& key, int pool, int rank, const std::string& name) const;

 private:
  enum class ProgramKind { kExit, kRaise, kHold, kTrap, kMissing, kClaim, kQueue };
  struct Program {
    ProgramKind kind = ProgramKind::kHold;
    int value = 0;
  };
  struct Rank {
    RankObservation seen;  // started, ended, heartbeat; the tree is derived
    Program program;
    std::map<std::string, std::string> env;
    bool claimed = false;
    bool running = false;
    bool lost = false;  // killed without a record
    SignalledBy signalled_by = SignalledBy::kNobody;
    std::vector<std::string> ran;
  };
  struct Attempt {
    std::optional<std::string> owner;  // nonce
    bool fenced = false;
    bool fence_closed = false;
    bool queued = false;  // launched, in the engine's queue
    std::string queued_nonce;
    std::vector<Rank> ranks;
    EngineEnd engine_end = EngineEnd::kNone;
    std::string reason;
    // Witness.
    int launches = 0;
    std::vector<StopLevel> stops;
    bool removed = false;
  };

  static Program ParseProgram(const LaunchSpec& spec, const RankLaunch& rank);
  Attempt& Ensure(const AttemptTarget& target);
  Rank* Find(const std::string& key, int pool, int rank);
  const Rank* Find(const std::string& key, int pool, int rank) const;
  void Arrive(Attempt& attempt, const LaunchSpec& spec);
  void Claim(Attempt& attempt, const std::string& nonce);
  void Start(Rank& rank, const std::string& nonce);
  void End(Rank& rank, ExitKind exit, int value);
  void DieOfKill(Rank& rank);
  HostStamp Stamp() const;
  Observation Describe(const Attempt& attempt, const AttemptTarget& target) const;
  static bool IsGone(const Attempt& attempt, const Rank& rank);
  void Wake(const std::string& key) const;

  const std::function<absl::Time()> now_;
  const Capabilities capabilities_;
  std::function<void(const std::string& key)> wake_;
  mutable std::mutex mutex_;
  std::map<std::string, Attempt> attempts_;
  std::map<std::string, LaunchScript> scripts_;
  std::optional<std::string> unreachable_;
};

}  // namespace tp::fake
