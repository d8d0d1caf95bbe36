#include "backends/docker/tracked_containers.h"

#include <algorithm>

#include <fmt/format.h>

#include "absl/time/clock.h"
#include "base/status.h"
#include "launch/attempt_dir.h"

namespace tp::docker {
namespace {

// An order to start that was sent by a tpd which is gone is carried out within this time, or never.
constexpr absl::Duration kOrdersInFlight = absl::Seconds(10);
// How long a claimed rank without a container has given no sign of life.
constexpr absl::Duration kSilence = absl::Seconds(60);

Claim ClaimOf(const launch::AttemptFiles& files, const std::string& nonce) {
  if (!files.claim) return Claim::kNone;
  if (files.claim->fenced) return Claim::kFenced;
  return files.claim->nonce == nonce ? Claim::kThisLaunch : Claim::kOtherLaunch;
}

Unknown UnknownOf(const absl::Status& status) { return Unknown{std::string(Message(status))}; }

const Container* Find(const std::map<RankKey, Container>& seen, const launch::RankFiles& rank) {
  const auto found = seen.find({rank.pool, rank.rank});
  return found == seen.end() ? nullptr : &found->second;
}

bool AnyIs(const std::map<RankKey, Container>& seen, ContainerState state) {
  return std::any_of(seen.begin(), seen.end(), [state](const auto& item) { return item.second.state == state; });
}

}  // namespace

TrackedContainers::TrackedContainers(const SharedPlace& place, const AttemptTarget& target)
    : place_(place), target_(target), reader_(target.key, target.attempt_dir, target.ranks_per_pool, place.reader) {}

bool TrackedContainers::IsAbout(const AttemptTarget& target) const {
  return target.attempt_dir == target_.attempt_dir && target.ranks_per_pool == target_.ranks_per_pool;
}

absl::StatusOr<Claim> TrackedContainers::ReadClaim(const std::string& nonce) {
  TP_ASSIGN_OR_RETURN(files_, reader_.ReadFresh());
  return ClaimOf(*files_, nonce);
}

absl::StatusOr<std::vector<RankKey>> TrackedContainers::RanksToSignal() {
  TP_ASSIGN_OR_RETURN(files_, reader_.ReadFresh());
  std::vector<RankKey> ranks;
  for (const launch::RankFiles& rank : files_->ranks) {
    if (rank.claim && !rank.ended) ranks.emplace_back(rank.pool, rank.rank);
  }
  return ranks;
}

Observation TrackedContainers::Observe(const std::string& nonce, const std::map<RankKey, Container>& seen,
                                       const LaunchProgress& launch,
                                       const std::function<std::optional<Inspected>(const std::string& id)>& inspect,
                                       const std::function<bool(absl::Time at)>& in_outage) {
  absl::StatusOr<const launch::AttemptFiles*> files = reader_.Read();
  // A record that was written before its container ended may have come after the last read.
  if (files.ok()) {
    files_ = *files;
    if (AnyWithoutRecord(seen)) files = reader_.ReadFresh();
  }
  if (!files.ok()) return UnknownOf(files.status());
  files_ = *files;
  looks_.resize(files_->ranks.size());
  LookForIdle(seen, launch);
  const Claim claim = ClaimOf(*files_, nonce);
  if (claim == Claim::kNone) return Unclaimed(nonce, seen, launch);
  CloseFenceOfCutShort(launch);
  Present present = Owned(claim, seen, launch);
  if (present.freed && claim != Claim::kFenced && !TellEnd(present, seen, inspect, in_outage)) {
    return Unknown{"the engine does not say how its containers ended"};
  }
  return present;
}

// Of a rank whose container has ended, or is gone.
bool TrackedContainers::AnyWithoutRecord(const std::map<RankKey, Container>& seen) const {
  return std::any_of(files_->ranks.begin(), files_->ranks.end(), [&](const launch::RankFiles& rank) {
    const Container* const container = Find(seen, rank);
    return !rank.ended && (container == nullptr || container->state == ContainerState::kExited);
  });
}

Observation TrackedContainers::Unclaimed(const std::string& nonce, const std::map<RankKey, Container>& seen,
                                         const LaunchProgress& launch) {
  Present present;
  present.ranks = Ranks();
  if (launch.image_failure) {
    present.phase = EnginePhase::kEnded;
    present.engine_end = EngineEnd::kImage;
    present.reason = *launch.image_failure;
    present.freed = true;
    return present;
  }
  bool on_its_way = launch.under_way || AnyIs(seen, ContainerState::kActive);
  for (size_t i = 0; i < looks_.size() && !on_its_way; ++i) {
    const Container* const container = Find(seen, files_->ranks[i]);
    on_its_way = container != nullptr && container->state == ContainerState::kCreated && !files_->fence_closed &&
                 !IdleFor(i, kOrdersInFlight);
  }
  if (on_its_way) {
    present.phase = EnginePhase::kWaiting;
    present.cards_granted = !launch.pulling;
    present.reason = launch.words;
    return present;
  }
  if (const absl::Status there = place_.storage.Check(); !there.ok()) return UnknownOf(there);
  const absl::StatusOr<Claim> claim = ReadClaim(nonce);
  if (!claim.ok()) return UnknownOf(claim.status());
  if (*claim != Claim::kNone) {
    LookForIdle(seen, launch);
    return Owned(*claim, seen, launch);
  }
  return Absent{Claim::kNone, Ranks()};
}

// What exists and never ran, or does not exist: since when.
void TrackedContainers::LookForIdle(const std::map<RankKey, Container>& seen, const LaunchProgress& launch) {
  const absl::Duration now = place_.since_boot();
  for (size_t i = 0; i < looks_.size(); ++i) {
    const launch::RankFiles& rank = files_->ranks[i];
    const Container* const container = Find(seen, rank);
    const int64_t beats = rank.heartbeat ? rank.heartbeat->count : 0;
    const bool stirs = launch.under_way || rank.claim.has_value() != looks_[i].claimed || beats != looks_[i].beats;
    if (container != nullptr && container->state != ContainerState::kCreated) {
      looks_[i].idle_since.reset();
    } else if (!looks_[i].idle_since || stirs) {
      looks_[i].idle_since = now;
    }
    looks_[i].claimed = rank.claim.has_value();
    looks_[i].beats = beats;
  }
}

bool TrackedContainers::IdleFor(size_t index, absl::Duration length) const {
  const std::optional<absl::Duration> since = looks_[index].idle_since;
  return since && place_.since_boot() - *since >= length;
}

// What has not claimed could still be started by an order that is late: only a closed fence keeps its job from running.
// What has claimed runs somewhere as long as its heartbeat rises, whatever this engine lists: it may be another one.
bool TrackedContainers::IsOver(size_t index) const {
  return files_->ranks[index].claim ? IdleFor(index, kSilence) : files_->fence_closed;
}

// A launch that was cut short leaves ranks that nobody starts any more.
void TrackedContainers::CloseFenceOfCutShort(const LaunchProgress& progress) const {
  for (size_t i = 0; i < looks_.size() && !progress.under_way && !files_->fence_closed; ++i) {
    if (files_->ranks[i].claim || !IdleFor(i, kOrdersInFlight)) continue;
    launch::CloseFence(target_.attempt_dir).IgnoreError();
    return;
  }
}

Tree TrackedContainers::TreeOf(size_t index, const std::map<RankKey, Container>& seen,
                               const LaunchProgress& launch) const {
  const launch::RankFiles& rank = files_->ranks[index];
  const Container* const container = Find(seen, rank);
  if (container != nullptr && container->state == ContainerState::kActive) return Tree::kAlive;
  if (container != nullptr && container->state == ContainerState::kExited) return Tree::kGone;
  // The engine has none of that name, or one that never ran. The list may be a moment older than the records.
  if (container == nullptr && rank.ended) return Tree::kGone;
  if (launch.under_way) return Tree::kUnknown;
  return IsOver(index) ? Tree::kGone : Tree::kUnknown;
}

Present TrackedContainers::Owned(Claim claim, const std::map<RankKey, Container>& seen,
                                 const LaunchProgress& launch) const {
  Present present;
  present.claim = claim;
  present.cards_granted = true;
  present.ranks = Ranks();
  if (claim == Claim::kFenced) {
    // Whatever starts now finds the fence and leaves.
    present.freed = !launch.under_way && !AnyIs(seen, ContainerState::kActive);
    for (RankObservation& rank : present.ranks) rank.tree = present.freed ? Tree::kGone : Tree::kUnknown;
  } else {
    for (size_t i = 0; i < present.ranks.size(); ++i) present.ranks[i].tree = TreeOf(i, seen, launch);
    present.freed = std::all_of(present.ranks.begin(), present.ranks.end(),
                                [](const RankObservation& rank) { return rank.tree == Tree::kGone; });
  }
  present.phase = present.freed ? EnginePhase::kEnded : EnginePhase::kActive;
  return present;
}

// False: a rank left no record, and the engine did not say how its container ended.
bool TrackedContainers::TellEnd(Present& present, const std::map<RankKey, Container>& seen,
                                const std::function<std::optional<Inspected>(const std::string& id)>& inspect,
                                const std::function<bool(absl::Time at)>& in_outage) {
  size_t zeros = 0;
  for (size_t i = 0; i < looks_.size(); ++i) {
    const launch::RankFiles& rank = files_->ranks[i];
    const Container* const container = Find(seen, rank);
    if (container == nullptr) continue;
    if (!looks_[i].ended || looks_[i].ended->container.id != container->id) looks_[i].ended = inspect(container->id);
    const std::optional<Inspected>& ended = looks_[i].ended;
    if (!ended && !rank.ended) return false;
    if (!ended) continue;
    const EngineEnd end = EndOf(*ended, in_outage(ended->finished_at));
    if (end == EngineEnd::kOutOfMemory) present.engine_end = end;
    zeros += end == EngineEnd::kExitedZero ? 1 : 0;
    if (!rank.ended && present.reason.empty()) {
      present.reason = ended->error.empty()
                           ? fmt::format("container {} exited with {}", ended->container.name, ended->exit_code)
                           : fmt::format("container {}: {}", ended->container.name, ended->error);
    }
  }
  if (zeros == looks_.size() && present.engine_end == EngineEnd::kNone) present.engine_end = EngineEnd::kExitedZero;
  return true;
}

std::vector<RankObservation> TrackedContainers::Ranks() const {
  std::vector<RankObservation> ranks;
  ranks.reserve(files_->ranks.size());
  for (const launch::RankFiles& rank : files_->ranks) {
    ranks.push_back({.pool = rank.pool,
                     .rank = rank.rank,
                     .tree = Tree::kUnknown,
                     .started = rank.started,
                     .ended = rank.ended,
                     .heartbeat = rank.heartbeat});
  }
  return ranks;
}

}  // namespace tp::docker
