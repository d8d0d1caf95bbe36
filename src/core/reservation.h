// Named cards kept for the first step in order that waits for room only, so that smaller ones do not pass
// it for ever (DESIGN 6, order). Pure.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "core/placement.h"
#include "core/step.h"

namespace tp::core {

// What is left of a step's time limit; without one the deployment's default counts.
absl::Duration RemainingLimit(const Step& step, const Policy& policy);
std::optional<absl::Duration> RemainingOwnLimit(const Step& step);

// What holds cards, and when that ends at the latest by its time limit. An attempt that is not RUNNING yet
// counts as if it began now.
class Occupants {
 public:
  Occupants() = default;
  Occupants(const Occupants& other);
  Occupants(Occupants&&) = default;
  Occupants& operator=(const Occupants&) = delete;
  Occupants& operator=(Occupants&&) = default;
  ~Occupants() = default;

  // As the step's attempt is now; nothing without one. Whether something has changed by it.
  bool Follow(const Step& step, const Policy& policy, const Capacity& capacity, absl::Time now);
  void ClockSet(absl::Duration by);
  // Nodes belong to other series now.
  void Reload(const Capacity& capacity);

  struct Occupant {
    absl::Time ends;
    bool metered = false;
    std::optional<absl::Duration> limit;  // of the step, to notice that it was changed
    std::vector<PoolPlacement> placement;
    std::set<std::string> series;        // of its nodes
    std::vector<CardSet::Share> shares;  // of the present Capacity
  };
  const std::map<StepRef, Occupant>& all() const { return occupants_; }

  using ByEnd = std::map<std::pair<absl::Time, StepRef>, const Occupant*>;
  // Those that hold cards on a node of one of the series, one by one in the order in which they end.
  class Ending {
   public:
    Ending(const Occupants& occupants, const std::set<std::string>& series);
    // The next one; null: there is none.
    const Occupant* Next();

   private:
    std::vector<std::pair<ByEnd::const_iterator, ByEnd::const_iterator>> rest_;  // of each series
  };
  // When the first of them ends that ends later than `after`.
  std::optional<absl::Time> NextEnd(const std::set<std::string>& series, absl::Time after) const;

 private:
  void Put(StepRef ref, Occupant occupant);
  void Index(StepRef ref, const Occupant& occupant);
  void Drop(StepRef ref);

  std::map<StepRef, Occupant> occupants_;
  std::map<std::string, ByEnd> by_end_;  // by series
};

struct Reservation {
  StepRef step;
  absl::Time start;
  std::vector<PoolPlacement> placement;
  std::set<std::string> series;
  CardSet cards;  // of the present Capacity
};

// The earliest moment at which the shape has room by the time limits of what runs, and the cards it then
// gets. Cards of `others` are left to these. Nothing: not even when all has ended.
std::optional<Reservation> Reserve(const Capacity& capacity, const Occupants& occupants, const ResolvedShape& shape,
                                   const std::string& avoid_node, const CardSet& others, absl::Time now);

// Cards that a step with this much left of its time limit may not use: it would not end in time.
CardSet BlockedFor(const std::vector<const Reservation*>& reservations, StepRef step, absl::Duration limit,
                   absl::Time now);

}  // namespace tp::core
