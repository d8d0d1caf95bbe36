// The hidden truth: engines, hosts, processes and the storage that their records are on. It knows what
// really runs; the loop learns of it through Observation values alone. Breaches that only the truth can
// show (a command that runs twice, two jobs on one card) are reported to the journal as they happen.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/ids.h"
#include "core/node_book.h"
#include "core/state.h"
#include "sim/journal.h"
#include "sim/options.h"
#include "sim/plan.h"
#include "sim/rng.h"
#include "sim/timeline.h"
#include "tp/attempt.h"
#include "tp/launch.h"
#include "tp/observation.h"

namespace tp::sim {

struct RankTruth {
  int pool = 0;
  int rank = 0;
  RankPlacement placement;
  std::optional<size_t> owner;  // the object whose runner linked the rank's claim
  std::optional<int64_t> claimed_us;
  std::optional<int64_t> started_us;  // the job's first instruction
  std::optional<int64_t> ended_us;    // the tree is gone
  bool end_record = false;
  EndRecord end;  // but its stamp
  int64_t start_visible_us = 0;
  int64_t end_visible_us = 0;
  int64_t gone_known_us = 0;

  bool process() const { return claimed_us && !ended_us; }
  bool clean() const { return started_us && ended_us && end.clean() && !end.signalled(); }
};

struct ObjectTruth {
  std::string nonce;
  int64_t created_us = 0;
  int64_t listed_us = 0;  // from here on the engine shows it
  int64_t granted_us = 0;
  bool removed = false;
  std::vector<bool> may_start;  // by rank
  EngineEnd end = EngineEnd::kNone;

  bool over() const;
};

// A card from when it broke until somebody had seen to it.
struct CardTruth {
  core::NodePart part;
  std::string why;
  int64_t broke_us = 0;
  std::optional<int64_t> mended_us;
};

struct AttemptTruth {
  std::string key;
  core::AttemptRef ref;
  std::vector<RankTruth> ranks;
  std::vector<ObjectTruth> objects;
  Plan plan;
  std::string claim;  // the nonce that owns it; kFenced: tpd; empty: nobody yet
  bool fence_closed = false;
  std::optional<int64_t> left_us;  // when tpd, having left it, first asked for its records
  int coming = 0;                  // launch calls whose object is not there yet
  std::optional<LaunchRejected::Kind> rejected;

  bool AnyProcess() const;
  // Every rank exited 0, unsignalled.
  bool Clean() const;
  bool AllStarted() const;
  // Every rank's records exist.
  bool AllRecorded() const;
  // Every rank has ended, and the end records that were lost show sooner or later.
  bool RecordsComeLate() const;
  // A rank could still come up and pass the claim.
  bool CanStart() const;

  void RemoveObjects();
};

class World {
 public:
  // All outlive the world. `options` may change while it runs (Calm).
  World(const Options& options, Timeline& timeline, Rng& rng, Journal& journal);

  // Told of every change of an attempt, as a wake-up.
  void SetChanged(std::function<void(const std::string& key)> changed) { changed_ = std::move(changed); }
  // A defect that tests plant: ranks do not look at claims and fences.
  void IgnoreClaims() { ignore_claims_ = true; }

  void StartOutages();
  void EndOutages();
  bool engine_down() const { return timeline_.now_us() < engine_down_until_us_; }
  bool storage_down() const { return timeline_.now_us() < storage_down_until_us_; }

  // What calls do at the moment they take effect.
  AttemptTruth& Prepare(const AttemptTarget& target, const LaunchSpec& spec);
  void Create(AttemptTruth& attempt, const std::string& nonce, int64_t listed_after_us);
  FenceResult Fence(const AttemptTarget& target);
  void Signal(const std::string& key, StopLevel level);
  void Remove(const std::string& key);
  // tpd looks for records of an attempt that it has left.
  void Left(const std::string& key);
  Observation Look(const AttemptTarget& target) const;
  // The engine shows an object of it.
  bool Listed(const AttemptTruth& attempt) const;

  // False: it was broken before.
  bool BreakCard(const core::NodePart& part);
  void MendCard(const core::NodePart& part);
  std::string WhyBroken(const core::NodePart& part) const;  // empty: it is not
  std::vector<core::NodePart> BusyCards() const;            // of ranks that run
  void FailRanksOn(const core::NodePart& part, int code);
  // Faults of the attempt's cards that were there at any time since its object was.
  std::vector<CardTruth> FaultsOf(const AttemptTruth& attempt) const;
  // A look at cards came to nothing: what it would have found is found later, if at all.
  void ExcuseLooks() { looks_excused_us_ = timeline_.now_us(); }
  int64_t looks_excused_us() const { return looks_excused_us_; }

  const AttemptTruth* Find(const std::string& key) const;
  const std::map<std::string, AttemptTruth>& attempts() const { return attempts_; }
  int64_t SkewUs(const std::string& node) const;

 private:
  AttemptTruth& Known(const AttemptTarget& target);
  void RankComesUp(AttemptTruth& attempt, size_t object, size_t rank);
  bool PassesClaim(AttemptTruth& attempt, size_t object, size_t rank);
  void RankRuns(AttemptTruth& attempt, size_t rank);
  void CheckRun(const AttemptTruth& attempt, const RankTruth& rank);
  void CheckOneLaunch(const AttemptTruth& attempt, const RankTruth& rank);
  void CheckOneAttempt(const AttemptTruth& attempt);
  void CheckCards(const AttemptTruth& attempt, const RankTruth& rank);
  void PlayStory(AttemptTruth& attempt, size_t rank);
  void EndLater(AttemptTruth& attempt, size_t rank, int64_t after_us, const EndRecord& end);
  void VanishLater(AttemptTruth& attempt, size_t rank, int64_t after_us);
  void PreemptLater(AttemptTruth& attempt, int64_t after_us);
  void LoseNodeLater(AttemptTruth& attempt, size_t rank, int64_t after_us);
  void DeleteLater(AttemptTruth& attempt, int64_t after_us);
  void End(AttemptTruth& attempt, size_t rank, std::optional<EndRecord> end);
  void EngineSees(AttemptTruth& attempt);
  void TermFrom(AttemptTruth& attempt, size_t rank, SignalledBy by);
  void KillRank(AttemptTruth& attempt, size_t rank);
  void EngineEnds(AttemptTruth& attempt, EngineEnd how);
  void Changed(const AttemptTruth& attempt);
  void EngineOutage();
  void StorageOutage();

  Claim ClaimAsSeen(const AttemptTruth& attempt, const std::string& nonce) const;
  bool EndRecordShows(const AttemptTruth& attempt, const RankTruth& rank, bool all_visible) const;
  RankObservation Seen(const AttemptTruth& attempt, const RankTruth& rank, bool all_visible) const;
  Present SeenPresent(const AttemptTruth& attempt, const std::string& nonce) const;
  HostStamp Stamp(const RankTruth& rank, int64_t at_us) const;

  const Options& options_;
  Timeline& timeline_;
  Rng& rng_;
  Journal& journal_;
  std::function<void(const std::string&)> changed_ = [](const std::string&) {};
  std::map<std::string, AttemptTruth> attempts_;
  std::map<core::StepRef, std::set<std::string>> of_step_;
  std::map<std::string, int64_t> skew_us_;
  int64_t engine_down_until_us_ = 0;
  int64_t storage_down_until_us_ = 0;
  std::vector<CardTruth> card_faults_;
  int64_t looks_excused_us_ = 0;
  bool outages_ = false;
  bool ignore_claims_ = false;
};

}  // namespace tp::sim
