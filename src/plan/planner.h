// Which queued steps start, and in which order (DESIGN 6, 12). The owner of what the cluster holds: cards,
// quota use, reservations; and of the index of those that wait, by what can wake them. A look costs what
// changed since the last one, never the length of the queue:
//
//   a gate of its own    a timer, or the next Follow of the step
//   WINDOW               the next edge of its schedule
//   QUOTA_*              its owner holds less, or may hold more
//   CAPACITY, ORDER      cards of its series were released, or the order there has changed
//
// Steps that no gate tells apart form a class, and the first of it is judged for all. Pure: no clock, no
// I/O; not thread-safe. What starts is the caller's to admit: it says so by Follow.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "core/fair_share.h"
#include "core/gates.h"
#include "core/order.h"
#include "core/placement.h"
#include "core/quota.h"
#include "core/quota_use.h"
#include "core/registry.h"
#include "core/reservation.h"
#include "core/run.h"
#include "core/step.h"
#include "plan/image.h"
#include "plan/job_class.h"
#include "plan/room.h"
#include "plan/window_book.h"

namespace tp::plan {

struct Start {
  core::StepRef step;
  core::ResolvedShape shape;
  std::vector<PoolPlacement> placement;
};

// A queued step whose shape resolves no more, or again.
struct ShapeChange {
  core::StepRef step;
  std::string why_not;  // empty: it resolves
};

struct PlannerCounters {
  int64_t evaluations = 0;  // classes judged
  int64_t woken = 0;        // classes that something may have opened, the next step of one included
  int64_t passes = 0;
};

class Planner {
 public:
  Planner(const core::Policy& policy, absl::TimeZone accounting_zone, std::shared_ptr<const core::Registry> registry);

  // Another planner that knows the same; what it finds out is its own. It refers to the image's policy.
  explicit Planner(const Image& image);
  Planner(const Planner&) = delete;
  Planner& operator=(const Planner&) = delete;
  Planner(Planner&&) = delete;
  Planner& operator=(Planner&&) = delete;
  ~Planner() = default;
  Image TakeImage() const;

  // --- What changed ---

  // The step as it is now, in whatever state; again whenever something of it changed that a gate, its cards
  // or its bill depend on.
  void Follow(const core::RunWithSteps& run, const core::Step& step, absl::Time now);
  void SetRegistry(std::shared_ptr<const core::Registry> registry, absl::Time now);
  void PutRule(core::QuotaRule rule);
  void DropRule(int64_t id);
  void SetStorage(const std::string& owner, core::StorageUse use);
  // Settled use twice: as GPU-hours of the month, and for the owner's share, by when it ended.
  void AddSettled(const std::string& month, const std::string& owner, int64_t gpu_ms);
  void AddUse(const std::string& owner, int64_t end_unix_ms, int64_t gpu_ms);
  void HoldOpen(const std::string& series, absl::Time until);
  // In place of what was withheld before.
  void Withhold(std::map<std::string, core::Capacity::Withheld> withheld);
  void ClockSet(absl::Duration by);

  // --- What follows ---

  // Once at the beginning of a turn; then Next until it has nothing, each start admitted in between.
  void BeginTurn(absl::Time now);
  std::optional<Start> Next();
  // It could not be admitted: it is not tried again before its next Follow.
  void SetAside(core::StepRef ref);
  // Which one Next was at work on, where it threw.
  std::optional<core::StepRef> judging() const { return judging_; }
  std::vector<ShapeChange> TakeShapeChanges() { return std::exchange(shape_changes_, {}); }
  // When something opens by itself, or there is something to look at.
  std::optional<absl::Time> NextWake() const;
  // The same without the look at shares that comes by every so often.
  std::optional<absl::Time> NextOpening() const;

  // --- What is so ---

  // Everything that holds a step, queued or only thought of.
  std::vector<core::GateVerdict> Verdicts(const core::RunWithSteps& run, const core::Step& step,
                                          const core::ResolvedShape* shape, absl::Time now) const;
  core::Situation SituationOf(const core::RunWithSteps& run, const core::Step& step, const core::ResolvedShape& shape,
                              absl::Time now) const;
  core::WindowStanding StandingOf(const core::ResolvedShape& shape, absl::Time now) const {
    return windows_.StandingOf(*registry_, shape, now);
  }
  const core::Schedule& ScheduleOf(const core::ResolvedShape& shape, absl::Time now) const {
    return windows_.ScheduleOf(*registry_, shape, now);
  }
  const core::Registry& registry() const { return *registry_; }
  const std::shared_ptr<const core::Registry>& shared_registry() const { return registry_; }
  const core::Policy& policy() const { return policy_; }
  absl::TimeZone accounting_zone() const { return zone_; }
  const core::QuotaBook& quotas() const { return quotas_; }
  const core::QuotaUsage& usage() const { return usage_; }
  // As of the last BeginTurn; empty: they do not count.
  const core::Shares& shares() const { return shares_; }
  const core::Capacity& capacity() const { return capacity_; }
  const core::Occupants& occupants() const { return occupants_; }
  const core::HeldOpen& held_open() const { return windows_.held_open(); }
  const std::map<core::StepRef, core::Reservation>& reservations() const { return reservations_; }
  // The one gate at which each class waits, as the last look left it: what waits behind another of its size
  // waits for the room that this one waits for.
  std::vector<std::pair<ClassId, core::GateKind>> GatesOfClasses() const;
  // Of a queued step.
  std::optional<ClassId> ClassOf(core::StepRef ref) const;
  const ClassKey* FindKey(core::StepRef ref) const;  // null: it is not queued
  bool OwnGatesOpen(core::StepRef ref) const;
  // Every class as of the last BeginTurn, with the first rule that holds it: HELD by its shape, WINDOW or a quota.
  using ClassSight = std::function<void(const JobClass& job_class, std::optional<core::GateKind> held_by)>;
  void EachClass(const ClassSight& see) const;
  const PlannerCounters& counters() const { return counters_; }

 private:
  struct Queued {
    ClassId job_class = 0;
    absl::Time submitted;
    std::optional<absl::Time> opens_at;  // by its own gates; absent: they are open
  };
  // One walk through everything that waits for room in some series, in order.
  struct Pass {
    std::set<std::string> series;
    std::optional<core::QueueOrder> last;          // the walk has come so far
    std::map<std::string, absl::Duration> limits;  // by size: what is not below is held back, until something starts
    std::set<std::string> done;                    // sizes
  };

  // The queue (planner.cc)
  void Enqueue(const core::RunWithSteps& run, const core::Step& step, absl::Time now);
  void Enqueue(JobClass& job_class, core::StepRef ref, absl::Time submitted, std::optional<absl::Time> opens_at);
  void Dequeue(core::StepRef ref);
  JobClass& ClassOf(const ClassKey& key);
  std::shared_ptr<const Shape> ShapeOf(const std::vector<std::string>& profiles);
  void SetReady(core::StepRef ref, Queued& queued, bool ready);
  void DropClassIfEmpty(ClassId id);
  void FollowHeld(const core::RunWithSteps& run, const core::Step& step, absl::Time now);

  // Places
  void MoveTo(JobClass& job_class, Place place);
  void Leave(JobClass& job_class);
  void Wake(ClassId id);
  void WakeOwner(const std::string& owner);
  void WakeAllQuotas();
  void WakeAllWindows();
  void NoteClosed(JobClass& job_class, core::GateKind gate);
  void Disturb(const std::set<std::string>& series);
  void CardsReleased(const std::vector<PoolPlacement>& placement);

  // A turn
  void WakeByTime();
  void FreezeShares();
  void CheckHolders();
  core::QueueOrder OrderOf(const std::string& owner, int32_t priority, absl::Time submitted, core::StepRef ref,
                           absl::Time now) const;
  bool IsReserved(const std::set<std::string>& series) const;
  std::optional<core::GateKind> ClosedBeforeRoom(const JobClass& job_class) const;
  void BeginPass();
  void EndPass();
  std::optional<Room::Head> FirstOfPass() const;
  std::optional<Start> Judge(JobClass& job_class);
  std::optional<Start> JudgeRoom(JobClass& job_class);
  void HoldFull(JobClass& job_class);
  std::vector<const core::Reservation*> Reservations() const;
  std::optional<absl::Time> NextOverrun() const;
  std::optional<absl::Time> NextLapse() const;

  const core::Policy& policy_;
  const absl::TimeZone zone_;
  std::shared_ptr<const core::Registry> registry_;
  core::Capacity capacity_;
  core::QuotaBook quotas_;
  core::QuotaUsage usage_;
  core::Occupants occupants_;
  mutable WindowBook windows_;  // what it worked out is kept
  core::FairShare fair_share_;
  core::Shares shares_;  // of this turn

  std::map<core::StepRef, Queued> queued_;
  std::set<std::pair<absl::Time, core::StepRef>> own_openings_;  // of queued_
  std::map<ClassKey, ClassId> class_ids_;
  std::map<ClassId, JobClass> classes_;
  ClassId next_class_ = 1;
  std::map<std::vector<std::string>, std::weak_ptr<const Shape>> shapes_;
  std::map<std::string, std::set<ClassId>> quota_waits_;   // by owner
  std::set<std::pair<absl::Time, ClassId>> window_waits_;  // by when they are looked at again
  Room room_;
  std::map<core::StepRef, core::Reservation> reservations_;
  std::set<std::string> disturbed_;  // series in which something may have opened or changed its order
  std::optional<Pass> pass_;
  std::optional<absl::Time> recheck_at_;  // the order in some series changes by itself
  std::optional<absl::Time> rules_edge_;  // a dated quota begins or ends
  std::optional<absl::Time> month_ends_;
  std::vector<ShapeChange> shape_changes_;
  std::optional<core::StepRef> judging_;
  absl::Time now_;
  PlannerCounters counters_;
};

}  // namespace tp::plan
