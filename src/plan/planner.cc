#include "plan/planner.h"

#include <algorithm>

#include "core/ledger.h"

namespace tp::plan {
namespace {

// For so long the order of owners is taken to stay as it is while attempts run.
constexpr absl::Duration kSharesHold = absl::Minutes(1);

void Earlier(std::optional<absl::Time>& earliest, const std::optional<absl::Time>& at) {
  if (at && (!earliest || *at < *earliest)) earliest = at;
}

bool Touch(const std::set<std::string>& a, const std::set<std::string>& b) {
  return std::any_of(a.begin(), a.end(), [&](const std::string& one) { return b.contains(one); });
}

// Owners by how many used less; whoever used nothing is first anyway.
std::map<std::string, size_t> Ranks(const core::Shares& shares) {
  std::map<double, std::vector<std::string>> by_share;
  for (const auto& [owner, share] : shares) {
    if (share > 0) by_share[share].push_back(owner);
  }
  std::map<std::string, size_t> ranks;
  size_t rank = 0;
  for (const auto& [share, owners] : by_share) {
    ++rank;
    for (const std::string& owner : owners) ranks.emplace(owner, rank);
  }
  return ranks;
}

}  // namespace

Planner::Planner(const core::Policy& policy, absl::TimeZone accounting_zone,
                 std::shared_ptr<const core::Registry> registry)
    : policy_(policy),
      zone_(accounting_zone),
      registry_(std::move(registry)),
      capacity_(*registry_),
      quotas_(registry_->quota_defaults),
      usage_(accounting_zone),
      fair_share_(policy.fair_share_half_life),
      room_(policy) {}

Planner::Planner(const Image& image)
    : policy_(image.policy),
      zone_(image.zone),
      registry_(image.registry),
      capacity_(image.capacity),
      quotas_(image.quotas),
      usage_(image.usage),
      occupants_(image.occupants),
      fair_share_(image.fair_share),
      room_(policy_) {
  windows_.Reset(image.held_open);
  for (size_t i = 0; i < image.classes.size(); ++i) {
    JobClass& job_class = ClassOf(image.classes[i].key);
    const size_t end = i + 1 < image.classes.size() ? image.classes[i + 1].first : image.waiting.size();
    for (size_t step = image.classes[i].first; step < end; ++step) {
      const Image::Waits& waits = image.waiting[step];
      Enqueue(job_class, waits.step, waits.submitted, waits.opens_at);
    }
  }
}

Image Planner::TakeImage() const {
  Image image{.policy = policy_,
              .zone = zone_,
              .registry = registry_,
              .capacity = capacity_,
              .quotas = quotas_,
              .usage = usage_,
              .occupants = occupants_,
              .held_open = windows_.held_open(),
              .fair_share = fair_share_,
              .classes = {},
              .waiting = {}};
  image.classes.reserve(classes_.size());
  image.waiting.reserve(queued_.size());
  for (const auto& [id, job_class] : classes_) {
    image.classes.push_back({.key = job_class.key, .first = image.waiting.size()});
    for (const core::StepRef& ref : job_class.all) {
      const Queued& queued = queued_.at(ref);
      image.waiting.push_back({.step = ref, .submitted = queued.submitted, .opens_at = queued.opens_at});
    }
  }
  return image;
}

// --- What changed --------------------------------------------------------------------------------------

void Planner::Follow(const core::RunWithSteps& run, const core::Step& step, absl::Time now) {
  FollowHeld(run, step, now);
  Dequeue(step.ref);
  if (step.state == core::JobState::kQueued) Enqueue(run, step, now);
}

void Planner::FollowHeld(const core::RunWithSteps& run, const core::Step& step, absl::Time now) {
  const auto held = occupants_.all().find(step.ref);
  const bool was_held = held != occupants_.all().end();
  if (was_held && !step.attempt) {
    capacity_.Release(held->second.placement);
    CardsReleased(held->second.placement);
  }
  if (!was_held && step.attempt) {
    capacity_.Take(step.attempt->placement);
    // Whoever a reservation held back may find no room at all now, and wait for that.
    if (pass_) pass_->limits.clear();
    Disturb(capacity_.SeriesOn(step.attempt->placement));
  }
  // When it ends by its limit is what a reservation may wait for.
  const bool ends_otherwise = occupants_.Follow(step, policy_, capacity_, now);
  if (ends_otherwise && step.attempt && !reservations_.empty()) Disturb(capacity_.SeriesOn(step.attempt->placement));
  if (usage_.Follow(run.run.owner, step)) WakeOwner(run.run.owner);
}

void Planner::SetRegistry(std::shared_ptr<const core::Registry> registry, absl::Time now) {
  now_ = now;
  registry_ = std::move(registry);
  capacity_.Reload(*registry_);
  occupants_.Reload(capacity_);
  quotas_.SetDefaults(registry_->quota_defaults);
  windows_.Reset(windows_.held_open());
  shapes_.clear();
  reservations_.clear();
  pass_.reset();
  for (auto& [id, job_class] : classes_) {
    const std::string why_not = job_class.shape->why_not;
    Leave(job_class);
    job_class.shape = ShapeOf(job_class.key.profiles);
    if (job_class.shape->why_not != why_not) {
      for (const core::StepRef& ref : job_class.all) shape_changes_.push_back({ref, job_class.shape->why_not});
    }
  }
  for (auto& [id, job_class] : classes_) Wake(id);
  rules_edge_.reset();
}

void Planner::Withhold(std::map<std::string, core::Capacity::Withheld> withheld) {
  std::set<std::string> series;
  const auto changed = [&](const auto& from, const auto& to) {
    for (const auto& [node, what] : from) {
      if (const auto other = to.find(node); other == to.end() || other->second != what) {
        series.merge(capacity_.SeriesOf(node));
      }
    }
  };
  changed(capacity_.withheld(), withheld);
  changed(withheld, capacity_.withheld());
  capacity_.Withhold(std::move(withheld));
  for (const std::string& size : room_.SizesOf(series)) room_.SetFull(size, false);
  Disturb(series);
}

void Planner::PutRule(core::QuotaRule rule) {
  const std::string user = rule.user;
  quotas_.Add(std::move(rule));
  rules_edge_.reset();
  WakeOwner(user);
}

void Planner::DropRule(int64_t id) {
  quotas_.Remove(id);
  rules_edge_.reset();
  WakeAllQuotas();
}

void Planner::SetStorage(const std::string& owner, core::StorageUse use) {
  usage_.SetStorage(owner, use);
  if (owner == core::kEverybody) {
    WakeAllQuotas();
  } else {
    WakeOwner(owner);
  }
}

void Planner::AddSettled(const std::string& month, const std::string& owner, int64_t gpu_ms) {
  usage_.AddSettled(month, owner, gpu_ms);
  if (gpu_ms < 0) WakeOwner(owner);
}

void Planner::AddUse(const std::string& owner, int64_t end_unix_ms, int64_t gpu_ms) {
  fair_share_.Add(owner, absl::FromUnixMillis(core::EndHourUnixMs(end_unix_ms)), gpu_ms);
}

void Planner::HoldOpen(const std::string& series, absl::Time until) {
  core::HeldOpen held_open = windows_.held_open();
  held_open[series] = until;
  windows_.Reset(std::move(held_open));
  WakeAllWindows();
}

void Planner::ClockSet(absl::Duration by) {
  now_ += by;
  occupants_.ClockSet(by);
  for (auto& [ref, reservation] : reservations_) reservation.start += by;
  rules_edge_.reset();
  month_ends_.reset();
  recheck_at_.reset();
  WakeAllQuotas();
  WakeAllWindows();
  Disturb(room_.AllSeries());
}

// --- The queue -----------------------------------------------------------------------------------------

void Planner::Enqueue(const core::RunWithSteps& run, const core::Step& step, absl::Time now) {
  JobClass& job_class = ClassOf(KeyOf(run, step));
  if (job_class.shape->why_not != step.hold.shape) {
    shape_changes_.push_back({step.ref, job_class.shape->why_not});
  }
  Enqueue(job_class, step.ref, run.run.created_at, core::OwnGatesOpenAt(run, step, now));
}

void Planner::Enqueue(JobClass& job_class, core::StepRef ref, absl::Time submitted,
                      std::optional<absl::Time> opens_at) {
  job_class.all.insert(ref);
  Queued& queued = queued_[ref];
  queued = {job_class.id, submitted, opens_at};
  if (queued.opens_at) {
    if (*queued.opens_at != absl::InfiniteFuture()) own_openings_.emplace(*queued.opens_at, ref);
  } else {
    SetReady(ref, queued, true);
  }
}

void Planner::Dequeue(core::StepRef ref) {
  const auto found = queued_.find(ref);
  if (found == queued_.end()) return;
  const ClassId id = found->second.job_class;
  if (found->second.opens_at) own_openings_.erase({*found->second.opens_at, ref});
  SetReady(ref, found->second, false);
  queued_.erase(found);
  classes_.at(id).all.erase(ref);
  DropClassIfEmpty(id);
}

JobClass& Planner::ClassOf(const ClassKey& key) {
  const auto [found, added] = class_ids_.try_emplace(key, next_class_);
  if (!added) return classes_.at(found->second);
  JobClass& job_class = classes_[next_class_];
  job_class.id = next_class_++;
  job_class.key = key;
  job_class.shape = ShapeOf(key.profiles);
  return job_class;
}

std::shared_ptr<const Shape> Planner::ShapeOf(const std::vector<std::string>& profiles) {
  std::weak_ptr<const Shape>& known = shapes_[profiles];
  if (auto shape = known.lock()) return shape;
  auto shape = MakeShape(*registry_, profiles);
  known = shape;
  return shape;
}

void Planner::DropClassIfEmpty(ClassId id) {
  const auto found = classes_.find(id);
  if (!found->second.all.empty()) return;
  Leave(found->second);
  class_ids_.erase(found->second.key);
  const std::vector<std::string> profiles = found->second.key.profiles;
  classes_.erase(found);
  if (const auto shape = shapes_.find(profiles); shape != shapes_.end() && shape->second.expired()) {
    shapes_.erase(shape);
  }
}

// The first of a class speaks for it: whoever comes or goes there may change what is first.
void Planner::SetReady(core::StepRef ref, Queued& queued, bool ready) {
  JobClass& job_class = classes_.at(queued.job_class);
  const Waiting waiting{queued.submitted, ref};
  const bool was_first = !job_class.ready.empty() && *job_class.ready.begin() == waiting;
  if (ready) {
    queued.opens_at.reset();
    job_class.ready.insert(waiting);
    if (job_class.place == Place::kNowhere) {
      Wake(job_class.id);
    } else if (job_class.place == Place::kRoom && *job_class.ready.begin() == waiting) {
      room_.Put(job_class);
      Disturb(job_class.shape->series);
    }
    return;
  }
  if (job_class.ready.erase(waiting) == 0) return;
  if (reservations_.erase(ref) > 0) Disturb(job_class.shape->series);
  if (job_class.ready.empty()) {
    Leave(job_class);
  } else if (was_first && job_class.place == Place::kRoom) {
    ++counters_.woken;  // the next one of its class may go as well
    room_.Put(job_class);
    Disturb(job_class.shape->series);
  }
}

void Planner::SetAside(core::StepRef ref) {
  const auto found = queued_.find(ref);
  if (found == queued_.end()) return;
  SetReady(ref, found->second, false);
  found->second.opens_at = absl::InfiniteFuture();
}

// --- Places --------------------------------------------------------------------------------------------

void Planner::Leave(JobClass& job_class) {
  switch (job_class.place) {
    case Place::kNowhere:
    case Place::kShape:
      break;
    case Place::kWindow:
      window_waits_.erase({*job_class.wakes_at, job_class.id});
      break;
    case Place::kQuota: {
      const auto waits = quota_waits_.find(job_class.key.owner);
      waits->second.erase(job_class.id);
      if (waits->second.empty()) quota_waits_.erase(waits);
      break;
    }
    case Place::kRoom:
      room_.Remove(job_class.id);
      break;
  }
  job_class.place = Place::kNowhere;
  job_class.wakes_at.reset();
}

void Planner::MoveTo(JobClass& job_class, Place place) {
  Leave(job_class);
  job_class.place = place;
  switch (place) {
    case Place::kNowhere:
    case Place::kShape:
      break;
    case Place::kWindow: {
      job_class.wakes_at = StandingOf(*job_class.shape->resolved, now_).edge.value_or(absl::InfiniteFuture());
      window_waits_.emplace(*job_class.wakes_at, job_class.id);
      break;
    }
    case Place::kQuota:
      quota_waits_[job_class.key.owner].insert(job_class.id);
      break;
    case Place::kRoom:
      room_.Put(job_class);
      break;
  }
}

void Planner::NoteClosed(JobClass& job_class, core::GateKind gate) {
  if (job_class.closed == gate) return;
  job_class.closed = gate;
  job_class.closed_since = now_;
}

// It is judged in order with all that wait for room where it does.
void Planner::Wake(ClassId id) {
  JobClass& job_class = classes_.at(id);
  if (job_class.ready.empty()) return;
  ++counters_.woken;
  if (!job_class.shape->resolved) {
    MoveTo(job_class, Place::kShape);
    return;
  }
  MoveTo(job_class, Place::kRoom);
  Disturb(job_class.shape->series);
}

void Planner::WakeOwner(const std::string& owner) {
  const auto found = quota_waits_.find(owner);
  if (found == quota_waits_.end()) return;
  const std::set<ClassId> waiting = found->second;
  for (const ClassId id : waiting) Wake(id);
}

void Planner::WakeAllQuotas() {
  std::vector<std::string> owners;
  owners.reserve(quota_waits_.size());
  for (const auto& [owner, classes] : quota_waits_) owners.push_back(owner);
  for (const std::string& owner : owners) WakeOwner(owner);
}

void Planner::WakeAllWindows() {
  const std::set<std::pair<absl::Time, ClassId>> waiting = window_waits_;
  for (const auto& [at, id] : waiting) Wake(id);
}

void Planner::Disturb(const std::set<std::string>& series) { disturbed_.insert(series.begin(), series.end()); }

void Planner::CardsReleased(const std::vector<PoolPlacement>& placement) {
  const std::set<std::string> series = capacity_.SeriesOn(placement);
  for (const std::string& size : room_.SizesOf(series)) room_.SetFull(size, false);
  Disturb(series);
}

// --- A turn --------------------------------------------------------------------------------------------

void Planner::BeginTurn(absl::Time now) {
  now_ = now;
  if (pass_) Disturb(pass_->series);  // it was left before its end
  pass_.reset();
  FreezeShares();
  WakeByTime();
}

// Settled use decays alike for all: only what runs or was settled since can have changed the order.
void Planner::FreezeShares() {
  if (!policy_.fair_share) return;
  core::Shares shares = fair_share_.SharesAt(now_, usage_.LiveGpuMs(now_));
  const bool same_order = Ranks(shares) == Ranks(shares_);
  shares_ = std::move(shares);
  if (!same_order) Disturb(room_.AllSeries());
}

core::QueueOrder Planner::OrderOf(const std::string& owner, int32_t priority, absl::Time submitted, core::StepRef ref,
                                  absl::Time now) const {
  return {.effective_priority = core::EffectivePriority(priority, submitted, now, policy_),
          .share = core::ShareOf(shares_, owner),
          .submitted = submitted,
          .step = ref};
}

void Planner::WakeByTime() {
  while (!own_openings_.empty() && own_openings_.begin()->first <= now_) {
    const core::StepRef ref = own_openings_.begin()->second;
    own_openings_.erase(own_openings_.begin());
    SetReady(ref, queued_.at(ref), true);
  }
  while (!window_waits_.empty() && window_waits_.begin()->first <= now_) Wake(window_waits_.begin()->second);
  if (rules_edge_ && *rules_edge_ <= now_) WakeAllQuotas();
  if (!rules_edge_ || *rules_edge_ <= now_) rules_edge_ = quotas_.NextEdge(now_).value_or(absl::InfiniteFuture());
  if (month_ends_ && *month_ends_ <= now_) WakeAllQuotas();
  if (!month_ends_ || *month_ends_ <= now_) month_ends_ = core::MonthOf(now_, zone_).ends;
  if (recheck_at_ && *recheck_at_ <= now_) {
    recheck_at_.reset();
    Disturb(room_.AllSeries());
  }
}

// A reservation is for a step whose only closed gate is CAPACITY.
void Planner::CheckHolders() {
  for (const auto& [ref, reservation] : reservations_) {
    if (ClosedBeforeRoom(classes_.at(queued_.at(ref).job_class))) Disturb(reservation.series);
  }
}

std::optional<core::GateKind> Planner::ClosedBeforeRoom(const JobClass& job_class) const {
  const core::ResolvedShape& shape = *job_class.shape->resolved;
  if (!core::WindowOpen(ScheduleOf(shape, now_), StandingOf(shape, now_), job_class.key.limit, now_)) {
    return core::GateKind::kWindow;
  }
  const std::string& owner = job_class.key.owner;
  return core::ClosedQuota(shape, quotas_.LimitsOf(owner, now_), usage_.UseOf(owner, now_));
}

bool Planner::IsReserved(const std::set<std::string>& series) const {
  return std::any_of(reservations_.begin(), reservations_.end(),
                     [&](const auto& entry) { return Touch(entry.second.series, series); });
}

void Planner::BeginPass() {
  ++counters_.passes;
  std::set<std::string> series = std::exchange(disturbed_, {});
  // What shares a node with these, and what is tied to those by a size.
  for (size_t before = 0; before != series.size();) {
    before = series.size();
    std::set<std::string> near;
    for (const std::string& one : series) near.merge(capacity_.Neighbours(one));
    series = room_.Closure(std::move(near));
  }
  std::erase_if(reservations_, [&](const auto& entry) { return Touch(entry.second.series, series); });
  pass_ = Pass{.series = std::move(series), .last = std::nullopt, .limits = {}, .done = {}};
}

void Planner::EndPass() {
  pass_.reset();
  recheck_at_ = room_.NextAging(now_);
  Earlier(recheck_at_, NextOverrun());
  Earlier(recheck_at_, NextLapse());
}

// The moment at which too little is left of its window for one that holds a reservation. Its owner's
// GPU-hours may run out as well: what uses them up is seen every few seconds, and CheckHolders with it.
std::optional<absl::Time> Planner::NextLapse() const {
  std::optional<absl::Time> next;
  for (const auto& [ref, reservation] : reservations_) {
    const JobClass& holder = classes_.at(queued_.at(ref).job_class);
    const core::ResolvedShape& shape = *holder.shape->resolved;
    const core::WindowStanding standing = StandingOf(shape, now_);
    if (!standing.edge) continue;
    const absl::Duration needed = core::NeededOpen(ScheduleOf(shape, now_), standing, holder.key.limit);
    Earlier(next, *standing.edge - needed + absl::Microseconds(1));
  }
  return next;
}

// The moment at which a job that a reservation waits for passes its time limit without having ended.
std::optional<absl::Time> Planner::NextOverrun() const {
  std::optional<absl::Time> next;
  for (const auto& [ref, reservation] : reservations_) {
    Earlier(next, occupants_.NextEnd(reservation.series, now_));
  }
  return next;
}

std::optional<Room::Head> Planner::FirstOfPass() const {
  std::optional<Room::Head> first;
  for (const std::string& size : room_.SizesOf(pass_->series)) {
    if (pass_->done.contains(size)) continue;
    if (room_.Full(size) && IsReserved(room_.SeriesOf(size))) continue;  // nothing to start or to reserve
    const auto limit = pass_->limits.find(size);
    Room::Bounds bounds{.after = pass_->last};
    if (limit != pass_->limits.end()) bounds.limit = limit->second;
    const auto head = room_.First(size, bounds, shares_, now_);
    if (head && (!first || *head < *first)) first = head;
  }
  return first;
}

std::optional<Start> Planner::Next() {
  while (true) {
    if (!pass_) {
      CheckHolders();
      if (disturbed_.empty()) return std::nullopt;
      BeginPass();
    }
    while (const auto head = FirstOfPass()) {
      pass_->last = head->order;
      if (auto start = Judge(classes_.at(head->id))) return start;
    }
    EndPass();
  }
}

std::optional<Start> Planner::Judge(JobClass& job_class) {
  ++counters_.evaluations;
  judging_ = job_class.ready.begin()->second;
  if (const auto closed = ClosedBeforeRoom(job_class)) {
    NoteClosed(job_class, *closed);
    MoveTo(job_class, *closed == core::GateKind::kWindow ? Place::kWindow : Place::kQuota);
    return std::nullopt;
  }
  return JudgeRoom(job_class);
}

std::optional<Start> Planner::JudgeRoom(JobClass& job_class) {
  const core::ResolvedShape& shape = *job_class.shape->resolved;
  const std::string& size = job_class.shape->size;
  if (!room_.Full(size) && !capacity_.HasRoom(shape, {})) room_.SetFull(size, true);
  if (room_.Full(size)) {
    HoldFull(job_class);
    return std::nullopt;
  }
  const core::StepRef ref = job_class.ready.begin()->second;
  const absl::Duration limit = job_class.key.limit.value_or(policy_.default_time_limit);
  const core::CardSet blocked = core::BlockedFor(Reservations(), ref, limit, now_);
  auto placement = capacity_.Place(shape, job_class.key.avoid_node, {.freed = nullptr, .blocked = &blocked});
  if (!placement) {
    NoteClosed(job_class, core::GateKind::kOrder);
    pass_->limits[size] = limit;
    return std::nullopt;
  }
  job_class.closed.reset();
  return Start{ref, shape, *std::move(placement)};
}

// The first that waits for room only reserves, in all of its series or in none.
void Planner::HoldFull(JobClass& job_class) {
  NoteClosed(job_class, core::GateKind::kCapacity);
  pass_->done.insert(job_class.shape->size);
  if (IsReserved(job_class.shape->series)) return;
  core::CardSet others;
  for (const auto& [ref, reservation] : reservations_) others.Add(reservation.cards);
  auto reservation =
      core::Reserve(capacity_, occupants_, *job_class.shape->resolved, job_class.key.avoid_node, others, now_);
  if (!reservation) return;
  reservation->step = job_class.ready.begin()->second;
  const core::StepRef holder = reservation->step;
  reservations_.emplace(holder, *std::move(reservation));
}

std::vector<const core::Reservation*> Planner::Reservations() const {
  std::vector<const core::Reservation*> all;
  all.reserve(reservations_.size());
  for (const auto& [ref, reservation] : reservations_) all.push_back(&reservation);
  return all;
}

std::optional<absl::Time> Planner::NextWake() const {
  std::optional<absl::Time> next = NextOpening();
  if (policy_.fair_share && !room_.empty()) Earlier(next, now_ + kSharesHold);
  return next;
}

std::optional<absl::Time> Planner::NextOpening() const {
  if (pass_ || !disturbed_.empty()) return now_;
  std::optional<absl::Time> next = recheck_at_;
  if (!own_openings_.empty()) Earlier(next, own_openings_.begin()->first);
  if (!window_waits_.empty()) Earlier(next, window_waits_.begin()->first);
  if (!quota_waits_.empty()) Earlier(next, month_ends_);
  if (!queued_.empty()) Earlier(next, rules_edge_);
  if (next == absl::InfiniteFuture()) return std::nullopt;
  return next;
}

// --- What is so ----------------------------------------------------------------------------------------

core::Situation Planner::SituationOf(const core::RunWithSteps& run, const core::Step& step,
                                     const core::ResolvedShape& shape, absl::Time now) const {
  core::Situation situation{.policy = policy_,
                            .capacity = capacity_,
                            .reservations = {},
                            .limits = quotas_.LimitsOf(run.run.owner, now),
                            .use = usage_.UseOf(run.run.owner, now),
                            .month_ends = core::MonthOf(now, zone_).ends,
                            .accounting_zone = zone_,
                            .schedule = ScheduleOf(shape, now),
                            .window = StandingOf(shape, now),
                            .now = now};
  const core::QueueOrder order = OrderOf(run.run.owner, run.run.priority, run.run.created_at, step.ref, now);
  for (const auto& [ref, reservation] : reservations_) {
    const JobClass& holder = classes_.at(queued_.at(ref).job_class);
    const absl::Time submitted = queued_.at(ref).submitted;
    if (OrderOf(holder.key.owner, holder.key.priority, submitted, ref, now) < order) {
      situation.reservations.push_back(&reservation);
    }
  }
  return situation;
}

std::vector<std::pair<ClassId, core::GateKind>> Planner::GatesOfClasses() const {
  std::vector<std::pair<ClassId, core::GateKind>> gates;
  for (const auto& [id, job_class] : classes_) {
    switch (job_class.place) {
      case Place::kNowhere:
        break;
      case Place::kShape:
        gates.emplace_back(id, core::GateKind::kHeld);
        break;
      case Place::kWindow:
      case Place::kQuota:
        gates.emplace_back(id, *job_class.closed);
        break;
      case Place::kRoom: {
        const bool full = room_.Full(job_class.shape->size);
        gates.emplace_back(id, full ? core::GateKind::kCapacity : core::GateKind::kOrder);
        break;
      }
    }
  }
  return gates;
}

std::optional<ClassId> Planner::ClassOf(core::StepRef ref) const {
  const auto queued = queued_.find(ref);
  if (queued == queued_.end()) return std::nullopt;
  return queued->second.job_class;
}

const ClassKey* Planner::FindKey(core::StepRef ref) const {
  const auto queued = queued_.find(ref);
  return queued == queued_.end() ? nullptr : &classes_.at(queued->second.job_class).key;
}

bool Planner::OwnGatesOpen(core::StepRef ref) const {
  const auto queued = queued_.find(ref);
  return queued != queued_.end() && !queued->second.opens_at;
}

void Planner::EachClass(const ClassSight& see) const {
  for (const auto& [id, job_class] : classes_) {
    see(job_class, job_class.shape->resolved ? ClosedBeforeRoom(job_class) : std::optional(core::GateKind::kHeld));
  }
}

std::vector<core::GateVerdict> Planner::Verdicts(const core::RunWithSteps& run, const core::Step& step,
                                                 const core::ResolvedShape* shape, absl::Time now) const {
  static const core::ResolvedShape kNoShape;
  const core::Situation situation = SituationOf(run, step, shape ? *shape : kNoShape, now);
  std::vector<core::GateVerdict> verdicts = core::ClosedGates({run, step, shape, situation});
  const auto queued = queued_.find(step.ref);
  if (queued == queued_.end()) return verdicts;
  const JobClass& job_class = classes_.at(queued->second.job_class);
  for (core::GateVerdict& verdict : verdicts) {
    if (verdict.gate == job_class.closed) verdict.since = std::max(job_class.closed_since, step.entered_at);
  }
  return verdicts;
}

}  // namespace tp::plan
