#include "core/reservation.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace tp::core {
namespace {

// How many of those that end first it takes until there is room, found without a look at those that end long
// after: twice as many are tried each time, and of the last ones the first count that is enough is found by
// halving. More room never hurts.
class Enough {
 public:
  Enough(const Occupants& occupants, const std::set<std::string>& series) : rest_(occupants, series) {}

  // False: not even when all have ended.
  template <typename HasRoom>
  bool Find(const HasRoom& has_room) {
    for (size_t wanted = 1;; wanted *= 2) {
      const size_t too_few = ending_.size();
      const CardSet too_few_freed = freed_;
      while (ending_.size() < wanted && TakeOne()) Free(ending_.size() - 1, freed_);
      if (has_room(freed_)) {
        Halve(too_few, too_few_freed, has_room);
        return true;
      }
      if (ending_.size() < wanted) return false;
    }
  }

  absl::Time Start(absl::Time now) const { return count_ == 0 ? now : std::max(now, ending_[count_ - 1]->ends); }

  // The choice of cards is between all that are free at that moment.
  void AddThoseEndingBy(absl::Time start) {
    while ((count_ < ending_.size() || TakeOne()) && ending_[count_]->ends <= start) Free(count_++, freed_);
  }

  const CardSet& freed() const { return freed_; }

 private:
  bool TakeOne() {
    const Occupants::Occupant* const next = rest_.Next();
    if (next) ending_.push_back(next);
    return next != nullptr;
  }

  void Free(size_t index, CardSet& cards) const {
    for (const CardSet::Share& share : ending_[index]->shares) cards.Add(share);
  }

  template <typename HasRoom>
  void Halve(size_t low, CardSet low_freed, const HasRoom& has_room) {
    count_ = ending_.size();
    while (count_ > low + 1) {
      const size_t middle = low + (count_ - low) / 2;
      CardSet freed = low_freed;
      for (size_t i = low; i < middle; ++i) Free(i, freed);
      if (has_room(freed)) {
        count_ = middle;
        freed_ = std::move(freed);
      } else {
        low = middle;
        low_freed = std::move(freed);
      }
    }
  }

  Occupants::Ending rest_;
  std::vector<const Occupants::Occupant*> ending_;  // taken from `rest_` so far
  size_t count_ = 0;                                // of them that are enough
  CardSet freed_;
};

std::set<std::string> SeriesOf(const ResolvedShape& shape) {
  std::set<std::string> series;
  for (const PoolShape& pool : shape.pools) series.insert(pool.series);
  return series;
}

}  // namespace

std::optional<absl::Duration> RemainingOwnLimit(const Step& step) {
  if (!step.spec.time_limit) return std::nullopt;
  return std::max(absl::ZeroDuration(), *step.spec.time_limit - step.ran);
}

absl::Duration RemainingLimit(const Step& step, const Policy& policy) {
  return RemainingOwnLimit(step).value_or(policy.default_time_limit);
}

bool Occupants::Follow(const Step& step, const Policy& policy, const Capacity& capacity, absl::Time now) {
  const auto found = occupants_.find(step.ref);
  if (!step.attempt) {
    if (found == occupants_.end()) return false;
    Drop(step.ref);
    return true;
  }
  const bool metered = step.attempt->meter.has_value();
  // Its end is worked out when it comes, when it starts to run and when its limit is changed: what is seen
  // of it meanwhile moves it by nothing that matters.
  if (found != occupants_.end() && found->second.metered == metered && found->second.limit == step.spec.time_limit) {
    return false;
  }
  if (found != occupants_.end()) Drop(step.ref);
  Put(step.ref, {.ends = now + RemainingLimit(step, policy),
                 .metered = metered,
                 .limit = step.spec.time_limit,
                 .placement = step.attempt->placement,
                 .series = capacity.SeriesOn(step.attempt->placement),
                 .shares = capacity.SharesOf(step.attempt->placement)});
  return true;
}

void Occupants::Put(StepRef ref, Occupant occupant) {
  Index(ref, occupants_.emplace(ref, std::move(occupant)).first->second);
}

void Occupants::Index(StepRef ref, const Occupant& occupant) {
  for (const std::string& series : occupant.series) by_end_[series].emplace(std::pair(occupant.ends, ref), &occupant);
}

// The index points into what it is of.
Occupants::Occupants(const Occupants& other) : occupants_(other.occupants_) {
  for (const auto& [ref, occupant] : occupants_) Index(ref, occupant);
}

void Occupants::Drop(StepRef ref) {
  const auto found = occupants_.find(ref);
  for (const std::string& series : found->second.series) by_end_[series].erase({found->second.ends, ref});
  occupants_.erase(found);
}

void Occupants::Reload(const Capacity& capacity) {
  by_end_.clear();
  for (auto& [ref, occupant] : std::exchange(occupants_, {})) {
    occupant.series = capacity.SeriesOn(occupant.placement);
    occupant.shares = capacity.SharesOf(occupant.placement);
    Put(ref, std::move(occupant));
  }
}

void Occupants::ClockSet(absl::Duration by) {
  by_end_.clear();
  for (auto& [ref, occupant] : std::exchange(occupants_, {})) {
    occupant.ends += by;
    Put(ref, std::move(occupant));
  }
}

Occupants::Ending::Ending(const Occupants& occupants, const std::set<std::string>& series) {
  for (const std::string& name : series) {
    const auto found = occupants.by_end_.find(name);
    if (found != occupants.by_end_.end()) rest_.emplace_back(found->second.begin(), found->second.end());
  }
}

// One that is in several series is first in all of them at once.
const Occupants::Occupant* Occupants::Ending::Next() {
  std::erase_if(rest_, [](const auto& range) { return range.first == range.second; });
  if (rest_.empty()) return nullptr;
  const auto first = std::min_element(rest_.begin(), rest_.end(),
                                      [](const auto& a, const auto& b) { return a.first->first < b.first->first; });
  const auto [key, occupant] = *first->first;
  for (auto& range : rest_) {
    if (range.first->first == key) ++range.first;
  }
  return occupant;
}

std::optional<absl::Time> Occupants::NextEnd(const std::set<std::string>& series, absl::Time after) const {
  constexpr StepRef kLast{std::numeric_limits<int64_t>::max(), std::numeric_limits<int32_t>::max()};
  std::optional<absl::Time> next;
  for (const std::string& name : series) {
    const auto found = by_end_.find(name);
    if (found == by_end_.end()) continue;
    const auto first = found->second.upper_bound({after, kLast});
    if (first != found->second.end() && (!next || first->first.first < *next)) next = first->first.first;
  }
  return next;
}

std::optional<Reservation> Reserve(const Capacity& capacity, const Occupants& occupants, const ResolvedShape& shape,
                                   const std::string& avoid_node, const CardSet& others, absl::Time now) {
  Enough enough(occupants, SeriesOf(shape));
  const bool found =
      enough.Find([&](const CardSet& freed) { return capacity.HasRoom(shape, {.freed = &freed, .blocked = &others}); });
  if (!found) return std::nullopt;
  Reservation reservation;
  reservation.start = enough.Start(now);
  enough.AddThoseEndingBy(reservation.start);
  auto placement = capacity.Place(shape, avoid_node, {.freed = &enough.freed(), .blocked = &others});
  if (!placement) return std::nullopt;  // no port
  reservation.placement = *std::move(placement);
  reservation.series = SeriesOf(shape);
  reservation.cards = capacity.CardsOf(reservation.placement);
  return reservation;
}

CardSet BlockedFor(const std::vector<const Reservation*>& reservations, StepRef step, absl::Duration limit,
                   absl::Time now) {
  CardSet blocked;
  for (const Reservation* reservation : reservations) {
    if (reservation->step != step && now + limit > reservation->start) blocked.Add(reservation->cards);
  }
  return blocked;
}

}  // namespace tp::core
