#include "sim/world.h"

#include <algorithm>
#include <csignal>
#include <iterator>
#include <limits>
#include <utility>

#include "sim/units.h"

namespace tp::sim {
namespace {

constexpr std::string_view kFenced = "(fenced)";
constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
constexpr int64_t kHeartbeat = kSecond;
constexpr int64_t kKillTakes = 50 * kMillisecond;
constexpr int64_t kPreemptionGrace = 10 * kSecond;
constexpr int64_t kBootedBefore = 5 * kHour;

EndRecord Exited(int code) {
  EndRecord end;
  end.exit = ExitKind::kExited;
  end.code = code;
  return end;
}

EndRecord KilledBy(int signal, int64_t oom_kills = 0) {
  EndRecord end;
  end.exit = ExitKind::kKilled;
  end.code = -1;
  end.term_signal = signal;
  end.oom_kills = oom_kills;
  return end;
}

EndRecord NotStarted() {
  EndRecord end;
  end.exit = ExitKind::kNotStarted;
  end.code = -1;
  end.start_error = "ENOENT";
  return end;
}

std::vector<int> CommonCards(const RankPlacement& one, const RankPlacement& other) {
  std::vector<int> common;
  std::copy_if(one.cards.begin(), one.cards.end(), std::back_inserter(common),
               [&](int card) { return std::find(other.cards.begin(), other.cards.end(), card) != other.cards.end(); });
  return common;
}

bool RecordsAreLost(Story story) { return story == Story::kRecordsLost || story == Story::kNoRecords; }

}  // namespace

bool ObjectTruth::over() const {
  return std::none_of(may_start.begin(), may_start.end(), [](bool may) { return may; });
}

bool AttemptTruth::AnyProcess() const {
  return std::any_of(ranks.begin(), ranks.end(), [](const RankTruth& rank) { return rank.process(); });
}

bool AttemptTruth::Clean() const {
  return !ranks.empty() && std::all_of(ranks.begin(), ranks.end(), [](const RankTruth& rank) { return rank.clean(); });
}

bool AttemptTruth::AllStarted() const {
  return !ranks.empty() &&
         std::all_of(ranks.begin(), ranks.end(), [](const RankTruth& rank) { return rank.started_us.has_value(); });
}

bool AttemptTruth::AllRecorded() const {
  return AllStarted() && plan.story != Story::kNoRecords &&
         std::all_of(ranks.begin(), ranks.end(),
                     [](const RankTruth& rank) { return rank.ended_us && rank.end_record; });
}

bool AttemptTruth::RecordsComeLate() const {
  return left_us && plan.late_records_us && !AllRecorded() && AllStarted() &&
         std::all_of(ranks.begin(), ranks.end(), [](const RankTruth& rank) { return rank.ended_us.has_value(); });
}

bool AttemptTruth::CanStart() const {
  if (fence_closed || claim == kFenced) return false;
  if (coming > 0 && claim.empty()) return true;
  for (const ObjectTruth& object : objects) {
    if (object.removed || (!claim.empty() && claim != object.nonce)) continue;
    for (size_t rank = 0; rank < ranks.size(); ++rank) {
      if (object.may_start[rank] && !ranks[rank].owner) return true;
    }
  }
  return false;
}

void AttemptTruth::RemoveObjects() {
  for (ObjectTruth& object : objects) {
    object.removed = true;
    object.may_start.assign(ranks.size(), false);
  }
}

World::World(const Options& options, Timeline& timeline, Rng& rng, Journal& journal)
    : options_(options), timeline_(timeline), rng_(rng), journal_(journal) {}

// --- Outages --------------------------------------------------------------------------------------

void World::StartOutages() {
  outages_ = true;
  if (options_.engine.between_outages.high_us > 0) EngineOutage();
  if (options_.engine.between_storage_outages.high_us > 0) StorageOutage();
}

void World::EndOutages() {
  outages_ = false;
  engine_down_until_us_ = 0;
  storage_down_until_us_ = 0;
}

void World::EngineOutage() {
  timeline_.In(rng_.Draw(options_.engine.between_outages), [this] {
    if (!outages_) return;
    engine_down_until_us_ = timeline_.now_us() + rng_.Draw(options_.engine.outage);
    journal_.Note("world: the engine does not answer");
    EngineOutage();
  });
}

void World::StorageOutage() {
  timeline_.In(rng_.Draw(options_.engine.between_storage_outages), [this] {
    if (!outages_) return;
    storage_down_until_us_ = timeline_.now_us() + rng_.Draw(options_.engine.storage_outage);
    journal_.Note("world: tpd cannot read the storage");
    StorageOutage();
  });
}

// --- Attempts -------------------------------------------------------------------------------------

const AttemptTruth* World::Find(const std::string& key) const {
  const auto found = attempts_.find(key);
  return found == attempts_.end() ? nullptr : &found->second;
}

int64_t World::SkewUs(const std::string& node) const {
  const auto found = skew_us_.find(node);
  return found == skew_us_.end() ? 0 : found->second;
}

AttemptTruth& World::Known(const AttemptTarget& target) {
  const auto [entry, added] = attempts_.try_emplace(target.key);
  AttemptTruth& attempt = entry->second;
  if (!added) return attempt;
  attempt.key = target.key;
  if (const auto parsed = core::ParseAttemptKey(target.key)) {
    attempt.ref = parsed->attempt;
    of_step_[attempt.ref.step].insert(target.key);
  } else {
    journal_.Break("{} is not a key", target.key);
  }
  return attempt;
}

AttemptTruth& World::Prepare(const AttemptTarget& target, const LaunchSpec& spec) {
  AttemptTruth& attempt = Known(target);
  if (!attempt.ranks.empty()) return attempt;
  for (const RankLaunch& launch : spec.ranks) {
    RankTruth rank;
    rank.pool = launch.pool;
    rank.rank = launch.rank;
    rank.placement = launch.placement;
    attempt.ranks.push_back(std::move(rank));
    if (!skew_us_.contains(launch.placement.node)) {
      const int64_t skew_us = rng_.Draw(options_.host_skew);
      skew_us_[launch.placement.node] = rng_.Chance(500) ? skew_us : -skew_us;
    }
  }
  attempt.plan = DrawPlan(options_, attempt.ranks.size(), rng_);
  return attempt;
}

void World::Create(AttemptTruth& attempt, const std::string& nonce, int64_t listed_after_us) {
  ObjectTruth object;
  object.nonce = nonce;
  object.created_us = timeline_.now_us();
  object.listed_us = object.created_us + listed_after_us;
  object.granted_us = object.created_us + attempt.plan.pending_us;
  object.may_start.assign(attempt.ranks.size(), true);
  const size_t index = attempt.objects.size();
  attempt.objects.push_back(std::move(object));
  journal_.Note("world: {} exists, story {}", attempt.key, static_cast<int>(attempt.plan.story));

  const Plan& plan = attempt.plan;
  if (plan.story == Story::kEvictedWaiting || plan.story == Story::kImage) {
    const EngineEnd how = plan.story == Story::kImage ? EngineEnd::kImage : EngineEnd::kEvicted;
    timeline_.In(plan.pending_us / 2, [this, &attempt, how] { EngineEnds(attempt, how); });
    return;
  }
  for (size_t rank = 0; rank < attempt.ranks.size(); ++rank) {
    if (plan.story == Story::kNeverUp && rank == plan.subject) continue;
    timeline_.In(plan.pending_us + plan.ranks[rank].start_us,
                 [this, &attempt, index, rank] { RankComesUp(attempt, index, rank); });
  }
  Changed(attempt);
}

FenceResult World::Fence(const AttemptTarget& target) {
  if (storage_down()) return FenceFailed{"the storage does not answer"};
  AttemptTruth& attempt = Known(target);
  if (attempt.claim.empty()) attempt.claim = kFenced;
  if (attempt.claim == kFenced) return FenceWon{};
  return FenceLost{attempt.claim};
}

void World::Signal(const std::string& key, StopLevel level) {
  const auto found = attempts_.find(key);
  if (found == attempts_.end()) return;
  AttemptTruth& attempt = found->second;
  const bool keeps_away = level == StopLevel::kKill || (level == StopLevel::kTerm && attempt.plan.term_cancels_starts);
  if (level == StopLevel::kKill) attempt.fence_closed = true;
  if (keeps_away) {
    for (ObjectTruth& object : attempt.objects) object.may_start.assign(attempt.ranks.size(), false);
  }
  for (size_t rank = 0; rank < attempt.ranks.size(); ++rank) {
    RankTruth& truth = attempt.ranks[rank];
    if (!truth.process()) continue;
    switch (level) {
      case StopLevel::kWarn:
        if (!truth.started_us) break;
        if (truth.end.signalled_by == SignalledBy::kNobody) truth.end.signalled_by = SignalledBy::kTpd;
        if (attempt.plan.exits_on_warning) {
          EndLater(attempt, rank, attempt.plan.ranks[rank].term_response_us, Exited(0));
        }
        break;
      case StopLevel::kTerm:
        TermFrom(attempt, rank, SignalledBy::kTpd);
        break;
      case StopLevel::kKill:
        KillRank(attempt, rank);
        break;
    }
  }
  Changed(attempt);
}

void World::Remove(const std::string& key) {
  const auto found = attempts_.find(key);
  if (found == attempts_.end()) return;
  AttemptTruth& attempt = found->second;
  if (attempt.AnyProcess()) journal_.Break("{} is removed while its processes run", key);
  attempt.RemoveObjects();
}

void World::Left(const std::string& key) {
  const auto found = attempts_.find(key);
  if (found != attempts_.end() && !found->second.left_us) found->second.left_us = timeline_.now_us();
}

// --- Ranks ----------------------------------------------------------------------------------------

bool World::PassesClaim(AttemptTruth& attempt, size_t object, size_t rank) {
  if (ignore_claims_) return true;
  const std::string& nonce = attempt.objects[object].nonce;
  if (attempt.claim.empty()) attempt.claim = nonce;
  return attempt.claim == nonce && !attempt.ranks[rank].owner && !attempt.fence_closed;
}

void World::RankComesUp(AttemptTruth& attempt, size_t object, size_t rank) {
  if (attempt.objects[object].removed || !attempt.objects[object].may_start[rank]) return;
  attempt.objects[object].may_start[rank] = false;
  const Plan& plan = attempt.plan;
  const bool storage_fails = plan.story == Story::kClaimError && (plan.subject == 0 || rank == plan.subject);
  if (storage_fails || !PassesClaim(attempt, object, rank)) {
    journal_.Note("world: {} rank {} does not pass the claim", attempt.key, rank);
    Changed(attempt);
    return;
  }
  RankTruth& truth = attempt.ranks[rank];
  truth.owner = object;
  truth.claimed_us = timeline_.now_us();
  timeline_.In(plan.ranks[rank].claim_us, [this, &attempt, rank] { RankRuns(attempt, rank); });
  Changed(attempt);
}

void World::RankRuns(AttemptTruth& attempt, size_t rank) {
  RankTruth& truth = attempt.ranks[rank];
  if (!truth.process()) return;
  if (attempt.plan.story == Story::kCannotStart && rank == attempt.plan.subject) {
    End(attempt, rank, NotStarted());
    return;
  }
  journal_.Note("world: {} rank {} runs on {}", attempt.key, rank, truth.placement.node);
  CheckRun(attempt, truth);
  truth.started_us = timeline_.now_us();
  truth.start_visible_us =
      attempt.plan.story == Story::kNoRecords ? kNever : timeline_.now_us() + attempt.plan.ranks[rank].visibility_us;
  PlayStory(attempt, rank);
  Changed(attempt);
}

// What must never happen, whatever the loop believes.
void World::CheckRun(const AttemptTruth& attempt, const RankTruth& rank) {
  CheckOneLaunch(attempt, rank);
  CheckOneAttempt(attempt);
  CheckCards(attempt, rank);
}

void World::CheckOneLaunch(const AttemptTruth& attempt, const RankTruth& rank) {
  if (rank.started_us) journal_.Break("{} rank {}: its command runs twice", attempt.key, rank.rank);
  const std::string& nonce = attempt.objects[*rank.owner].nonce;
  for (const RankTruth& other : attempt.ranks) {
    if (other.owner && attempt.objects[*other.owner].nonce != nonce) {
      journal_.Break("{}: two launch calls run in one attempt", attempt.key);
    }
  }
}

void World::CheckOneAttempt(const AttemptTruth& attempt) {
  for (const std::string& key : of_step_[attempt.ref.step]) {
    const AttemptTruth& other = attempts_.at(key);
    if (&other == &attempt) continue;
    if (other.AnyProcess()) journal_.Break("{} runs while {} still does", attempt.key, key);
    if (other.Clean() && other.AllRecorded()) {
      journal_.Break("{} runs although {} had ended with exit 0", attempt.key, key);
    }
  }
}

void World::CheckCards(const AttemptTruth& attempt, const RankTruth& rank) {
  for (const auto& [key, other] : attempts_) {
    if (&other == &attempt) continue;
    for (const RankTruth& busy : other.ranks) {
      if (!busy.process() || busy.placement.node != rank.placement.node) continue;
      for (const int card : CommonCards(busy.placement, rank.placement)) {
        journal_.Break("{} runs on card {} of {}, which {} still uses", attempt.key, card, rank.placement.node, key);
      }
      if (busy.placement.cards.empty() && rank.placement.cards.empty()) {
        journal_.Break("{} runs on {}, where {} still does", attempt.key, rank.placement.node, key);
      }
    }
  }
}

void World::PlayStory(AttemptTruth& attempt, size_t rank) {
  const Plan& plan = attempt.plan;
  const int64_t run_us = plan.ranks[rank].run_us;
  const bool subject = rank == plan.subject;
  switch (plan.story) {
    case Story::kFails:
      EndLater(attempt, rank, run_us, Exited(subject ? plan.exit_code : 0));
      return;
    case Story::kKilled:
      EndLater(attempt, rank, run_us, subject ? KilledBy(plan.signal) : Exited(0));
      return;
    case Story::kOutOfMemory:
      EndLater(attempt, rank, run_us, subject ? KilledBy(SIGKILL, 1) : Exited(0));
      return;
    case Story::kTermFromOutside:
      if (!subject) break;
      timeline_.In(run_us / 2, [this, &attempt, rank] { TermFrom(attempt, rank, SignalledBy::kOther); });
      break;
    case Story::kRunnerKilled:
      if (!subject) break;
      VanishLater(attempt, rank, run_us);
      return;
    case Story::kPreempted:
      if (subject) PreemptLater(attempt, run_us / 2);
      break;
    case Story::kNodeLost:
      if (!subject) break;
      LoseNodeLater(attempt, rank, run_us);
      return;
    case Story::kDeletedOutside:
      if (subject) DeleteLater(attempt, run_us / 2);
      break;
    case Story::kClean:
    case Story::kCannotStart:
    case Story::kRecordsLost:
    case Story::kNoRecords:
    case Story::kEvictedWaiting:
    case Story::kImage:
    case Story::kNeverUp:
    case Story::kClaimError:
      break;
  }
  EndLater(attempt, rank, run_us, Exited(0));
}

void World::EndLater(AttemptTruth& attempt, size_t rank, int64_t after_us, const EndRecord& end) {
  timeline_.In(after_us, [this, &attempt, rank, end] { End(attempt, rank, end); });
}

void World::VanishLater(AttemptTruth& attempt, size_t rank, int64_t after_us) {
  timeline_.In(after_us, [this, &attempt, rank] { End(attempt, rank, std::nullopt); });
}

void World::PreemptLater(AttemptTruth& attempt, int64_t after_us) {
  timeline_.In(after_us, [this, &attempt] {
    if (!attempt.AnyProcess()) return;
    EngineEnds(attempt, EngineEnd::kPreempted);
    for (size_t i = 0; i < attempt.ranks.size(); ++i) TermFrom(attempt, i, SignalledBy::kOther);
    timeline_.In(kPreemptionGrace, [this, &attempt] {
      for (size_t i = 0; i < attempt.ranks.size(); ++i) KillRank(attempt, i);
    });
  });
}

void World::LoseNodeLater(AttemptTruth& attempt, size_t rank, int64_t after_us) {
  timeline_.In(after_us, [this, &attempt, rank] {
    if (!attempt.ranks[rank].process()) return;
    EngineEnds(attempt, EngineEnd::kNodeLost);
    End(attempt, rank, std::nullopt);
  });
}

void World::DeleteLater(AttemptTruth& attempt, int64_t after_us) {
  timeline_.In(after_us, [this, &attempt] {
    if (!attempt.AnyProcess()) return;
    for (size_t i = 0; i < attempt.ranks.size(); ++i) End(attempt, i, std::nullopt);
    attempt.RemoveObjects();
  });
}

// Without `end` the tree is gone and nobody wrote a record.
void World::End(AttemptTruth& attempt, size_t rank, std::optional<EndRecord> end) {
  RankTruth& truth = attempt.ranks[rank];
  if (!truth.process()) return;
  const RankPlan& plan = attempt.plan.ranks[rank];
  const int64_t now_us = timeline_.now_us();
  truth.ended_us = now_us;
  truth.end_visible_us = kNever;
  if (end) {
    end->signalled_by = truth.end.signalled_by;
    truth.end = *end;
    truth.end_record = !RecordsAreLost(attempt.plan.story);
    if (truth.end_record) truth.end_visible_us = now_us + plan.visibility_us;
  } else {
    truth.end = KilledBy(SIGKILL);
  }
  // Gone counts only with the records that may be there.
  truth.gone_known_us = now_us + plan.verify_us;
  if (truth.started_us && truth.start_visible_us != kNever) {
    truth.gone_known_us = std::max(truth.gone_known_us, truth.start_visible_us);
  }
  if (truth.end_record) truth.gone_known_us = std::max(truth.gone_known_us, truth.end_visible_us);
  journal_.Note("world: {} rank {} ended, exit {} code {} signalled {}{}", attempt.key, rank,
                static_cast<int>(truth.end.exit), truth.end.code, static_cast<int>(truth.end.signalled_by),
                truth.end_record ? "" : ", no record");
  EngineSees(attempt);
  Changed(attempt);
}

// The engine's own word on an exit, where nothing else explains it.
void World::EngineSees(AttemptTruth& attempt) {
  for (ObjectTruth& object : attempt.objects) {
    if (object.end != EngineEnd::kNone || !object.over()) return;
  }
  if (attempt.AnyProcess()) return;
  const bool tells = attempt.plan.engine_tells || RecordsAreLost(attempt.plan.story);
  if (!tells) return;
  EngineEnd end = EngineEnd::kNone;
  if (attempt.Clean()) {
    end = EngineEnd::kExitedZero;
  } else {
    for (const RankTruth& rank : attempt.ranks) {
      if (!rank.end_record || rank.end.signalled()) return;
      if (!rank.end.clean() && end == EngineEnd::kNone) {
        end = rank.end.oom_kills > 0 ? EngineEnd::kOutOfMemory : EngineEnd::kFailed;
      }
    }
  }
  for (ObjectTruth& object : attempt.objects) object.end = end;
}

void World::TermFrom(AttemptTruth& attempt, size_t rank, SignalledBy by) {
  RankTruth& truth = attempt.ranks[rank];
  if (!truth.process()) return;
  if (truth.end.signalled_by == SignalledBy::kNobody) truth.end.signalled_by = by;
  if (!truth.started_us) {
    EndLater(attempt, rank, kMillisecond, NotStarted());
    return;
  }
  if (attempt.plan.ignores_term) return;
  const int code = attempt.plan.term_code;
  EndLater(attempt, rank, attempt.plan.ranks[rank].term_response_us, code < 0 ? KilledBy(-code) : Exited(code));
}

void World::KillRank(AttemptTruth& attempt, size_t rank) {
  if (attempt.ranks[rank].process()) EndLater(attempt, rank, kKillTakes, KilledBy(SIGKILL));
}

void World::EngineEnds(AttemptTruth& attempt, EngineEnd how) {
  for (ObjectTruth& object : attempt.objects) {
    object.end = how;
    object.may_start.assign(attempt.ranks.size(), false);
  }
  Changed(attempt);
}

void World::Changed(const AttemptTruth& attempt) {
  if (options_.pace.woken > 0 && rng_.Chance(options_.pace.woken)) changed_(attempt.key);
}

// --- What tpd can see -----------------------------------------------------------------------------

// A healthy engine denies an object for longer than absent_grace only where nothing of it can come up any
// more, or nothing of it has: tpd leaves what is absent and has no heartbeat that rises.
bool World::Listed(const AttemptTruth& attempt) const {
  const int64_t now_us = timeline_.now_us();
  const Plan& plan = attempt.plan;
  const bool briefly =
      plan.denied_until_us - plan.denied_from_us < absl::ToInt64Microseconds(options_.policy.absent_grace);
  return std::any_of(attempt.objects.begin(), attempt.objects.end(), [&](const ObjectTruth& object) {
    const int64_t age_us = now_us - object.created_us;
    const bool denied = age_us >= plan.denied_from_us && age_us < plan.denied_until_us;
    const bool half_up = !attempt.claim.empty() && attempt.claim != kFenced && !object.over();
    const bool hidden = (denied && (briefly || !half_up)) || (now_us < object.listed_us && !half_up);
    return !object.removed && !hidden;
  });
}

Claim World::ClaimAsSeen(const AttemptTruth& attempt, const std::string& nonce) const {
  if (attempt.claim.empty()) return Claim::kNone;
  if (attempt.claim == kFenced) return Claim::kFenced;
  return attempt.claim == nonce ? Claim::kThisLaunch : Claim::kOtherLaunch;
}

HostStamp World::Stamp(const RankTruth& rank, int64_t at_us) const {
  const std::string& node = rank.placement.node;
  return {node, "boot-" + node, at_us - options_.start_unix_us + kBootedBefore, at_us + SkewUs(node)};
}

bool World::EndRecordShows(const AttemptTruth& attempt, const RankTruth& rank, bool all_visible) const {
  if (!rank.ended_us) return false;
  const int64_t now_us = timeline_.now_us();
  if (rank.end_record) return all_visible || now_us >= rank.end_visible_us;
  return attempt.RecordsComeLate() && now_us >= *attempt.left_us + *attempt.plan.late_records_us;
}

RankObservation World::Seen(const AttemptTruth& attempt, const RankTruth& rank, bool all_visible) const {
  const int64_t now_us = timeline_.now_us();
  const auto index = static_cast<size_t>(&rank - attempt.ranks.data());
  RankObservation seen;
  seen.pool = rank.pool;
  seen.rank = rank.rank;
  const auto visible = [&](int64_t at_us) { return at_us != kNever && (all_visible || now_us >= at_us); };
  if (rank.started_us && visible(rank.start_visible_us)) {
    seen.started = StartRecord{attempt.objects[*rank.owner].nonce, Stamp(rank, *rank.started_us), 0};
  }
  if (EndRecordShows(attempt, rank, all_visible)) {
    seen.ended = rank.end;
    seen.ended->nonce = attempt.objects[*rank.owner].nonce;
    seen.ended->at = Stamp(rank, *rank.ended_us);
  }
  if (rank.claimed_us) {
    const int64_t beats = (rank.ended_us.value_or(now_us) - *rank.claimed_us) / kHeartbeat;
    seen.heartbeat = Heartbeat{beats, Stamp(rank, *rank.claimed_us + beats * kHeartbeat)};
    // Where records get lost the trees are not watched either: only the engine speaks of the end.
    const bool known_gone = rank.ended_us && now_us >= rank.gone_known_us && !RecordsAreLost(attempt.plan.story);
    seen.tree = !rank.ended_us ? Tree::kAlive : known_gone ? Tree::kGone : Tree::kUnknown;
  } else if (!attempt.objects.empty()) {
    const bool may_start = std::any_of(attempt.objects.begin(), attempt.objects.end(),
                                       [&](const ObjectTruth& object) { return object.may_start[index]; });
    if (!may_start) seen.tree = Tree::kGone;
  }
  return seen;
}

Present World::SeenPresent(const AttemptTruth& attempt, const std::string& nonce) const {
  const int64_t now_us = timeline_.now_us();
  Present present;
  present.claim = ClaimAsSeen(attempt, nonce);
  bool known_gone = true;
  bool lingers = false;
  for (const RankTruth& rank : attempt.ranks) {
    present.ranks.push_back(Seen(attempt, rank, false));
    known_gone = known_gone && !rank.process() && now_us >= rank.gone_known_us;
    lingers = lingers || (rank.ended_us && now_us < rank.gone_known_us + attempt.plan.linger_us);
  }
  bool over = true;
  for (const ObjectTruth& object : attempt.objects) {
    present.cards_granted = present.cards_granted || now_us >= object.granted_us;
    over = over && object.over();
    const bool about_exit = object.end == EngineEnd::kExitedZero || object.end == EngineEnd::kFailed ||
                            object.end == EngineEnd::kOutOfMemory;
    // An exit is told only where its records had their time to show.
    if (object.end != EngineEnd::kNone && (!about_exit || known_gone)) present.engine_end = object.end;
  }
  present.freed = over && known_gone && !lingers;
  present.phase = present.freed                                     ? EnginePhase::kEnded
                  : present.cards_granted && !attempt.claim.empty() ? EnginePhase::kActive
                                                                    : EnginePhase::kWaiting;
  return present;
}

Observation World::Look(const AttemptTarget& target) const {
  if (engine_down()) return Unknown{"the engine does not answer"};
  if (storage_down()) return Unknown{"the storage does not answer"};
  const AttemptTruth* attempt = Find(target.key);
  if (attempt == nullptr) return Absent{};
  if (Listed(*attempt)) return SeenPresent(*attempt, target.nonce);
  Absent absent;
  absent.claim = ClaimAsSeen(*attempt, target.nonce);
  for (const RankTruth& rank : attempt->ranks) absent.ranks.push_back(Seen(*attempt, rank, true));
  return absent;
}

}  // namespace tp::sim
