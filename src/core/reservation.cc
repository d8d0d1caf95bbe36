#include "core/reservation.h"

#include <algorithm>
#include <utility>

namespace tp::core {
namespace {

using EndingOne = std::pair<absl::Time, const Occupants::Occupant*>;

// How many of those that end first it takes until there is room, and their cards; nothing: all are too few.
struct Enough {
  size_t count = 0;
  CardSet freed;
};

void AddCards(const Capacity& capacity, const std::vector<EndingOne>& ending, size_t from, size_t to, CardSet& cards) {
  for (size_t i = from; i < to; ++i) cards.Add(capacity.CardsOf(ending[i].second->placement));
}

// More room never hurts, so the first count that is enough is found by halving; every card is added once.
template <typename HasRoom>
std::optional<Enough> FirstEnough(const Capacity& capacity, const std::vector<EndingOne>& ending,
                                  const HasRoom& has_room) {
  size_t low = 0;  // too few, with these cards
  CardSet low_freed;
  Enough enough{ending.size(), {}};
  AddCards(capacity, ending, 0, ending.size(), enough.freed);
  if (!has_room(enough.freed)) return std::nullopt;
  while (enough.count > low + 1) {
    const size_t middle = low + (enough.count - low) / 2;
    CardSet freed = low_freed;
    AddCards(capacity, ending, low, middle, freed);
    if (has_room(freed)) {
      enough = {middle, std::move(freed)};
    } else {
      low = middle;
      low_freed = std::move(freed);
    }
  }
  return enough;
}

absl::Time StartOf(const std::vector<EndingOne>& ending, size_t count, absl::Time now) {
  return count == 0 ? now : std::max(now, ending[count - 1].first);
}

// The choice of cards is between all that are free at that moment.
void AddThoseEndingBy(const Capacity& capacity, const std::vector<EndingOne>& ending, absl::Time start,
                      Enough& enough) {
  size_t all = enough.count;
  while (all < ending.size() && ending[all].first <= start) ++all;
  AddCards(capacity, ending, enough.count, all, enough.freed);
  enough.count = all;
}

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
                 .series = capacity.SeriesOn(step.attempt->placement)});
  return true;
}

void Occupants::Put(StepRef ref, Occupant occupant) {
  for (const std::string& series : occupant.series) by_end_[series].emplace(occupant.ends, ref);
  occupants_.emplace(ref, std::move(occupant));
}

void Occupants::Drop(StepRef ref) {
  const Occupant& occupant = occupants_.at(ref);
  for (const std::string& series : occupant.series) by_end_[series].erase({occupant.ends, ref});
  occupants_.erase(ref);
}

void Occupants::Reload(const Capacity& capacity) {
  by_end_.clear();
  for (auto& [ref, occupant] : std::exchange(occupants_, {})) {
    occupant.series = capacity.SeriesOn(occupant.placement);
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

std::vector<EndingOne> Occupants::ByEnd(const std::set<std::string>& series) const {
  std::set<std::pair<absl::Time, StepRef>> refs;
  for (const std::string& name : series) {
    const auto found = by_end_.find(name);
    if (found != by_end_.end()) refs.insert(found->second.begin(), found->second.end());
  }
  std::vector<EndingOne> ending;
  for (const auto& [ends, ref] : refs) ending.emplace_back(ends, &occupants_.at(ref));
  return ending;
}

std::optional<Reservation> Reserve(const Capacity& capacity, const Occupants& occupants, const ResolvedShape& shape,
                                   const std::string& avoid_node, const CardSet& others, absl::Time now) {
  const std::vector<EndingOne> ending = occupants.ByEnd(SeriesOf(shape));
  auto enough = FirstEnough(capacity, ending, [&](const CardSet& freed) {
    return capacity.HasRoom(shape, {.freed = &freed, .blocked = &others});
  });
  if (!enough) return std::nullopt;
  const absl::Time start = StartOf(ending, enough->count, now);
  AddThoseEndingBy(capacity, ending, start, *enough);
  auto placement = capacity.Place(shape, avoid_node, {.freed = &enough->freed, .blocked = &others});
  if (!placement) return std::nullopt;  // no port
  Reservation reservation;
  reservation.start = start;
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
