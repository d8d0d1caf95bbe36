#include "loop/wait_list.h"

namespace tp::loop {

void WaitList::Add(const Order& order) {
  waiting_.emplace(order, Waiting{});
  order_of_.emplace(std::get<core::StepRef>(order), order);
  to_look_at_.insert(order);
}

void WaitList::Remove(core::StepRef ref) {
  const auto found = order_of_.find(ref);
  if (found == order_of_.end()) return;
  const Order order = found->second;
  Waiting& waiting = waiting_.at(order);
  SetOpening(order, waiting, std::nullopt);
  SetSize(order, waiting, "");
  to_look_at_.erase(order);
  waiting_.erase(order);
  order_of_.erase(found);
}

void WaitList::Look(core::StepRef ref) {
  if (const auto found = order_of_.find(ref); found != order_of_.end()) to_look_at_.insert(found->second);
}

void WaitList::LookAtAll() {
  for (const auto& [order, waiting] : waiting_) to_look_at_.insert(order);
}

void WaitList::LookForRoom() {
  for (const auto& [size, orders] : without_room_) to_look_at_.insert(*orders.begin());
}

void WaitList::LookAtOpened(absl::Time now) {
  while (!openings_.empty() && openings_.begin()->first <= now) {
    const Order order = openings_.begin()->second;
    SetOpening(order, waiting_.at(order), std::nullopt);
    to_look_at_.insert(order);
  }
}

std::optional<core::StepRef> WaitList::Take() {
  if (to_look_at_.empty()) return std::nullopt;
  const core::StepRef ref = std::get<core::StepRef>(*to_look_at_.begin());
  to_look_at_.erase(to_look_at_.begin());
  return ref;
}

void WaitList::Keep(core::StepRef ref, std::optional<absl::Time> opens_at, const std::string& size) {
  const Order& order = order_of_.at(ref);
  Waiting& waiting = waiting_.at(order);
  SetOpening(order, waiting, opens_at);
  SetSize(order, waiting, size);
}

std::optional<absl::Time> WaitList::NextOpening() const {
  if (openings_.empty()) return std::nullopt;
  return openings_.begin()->first;
}

void WaitList::SetOpening(const Order& order, Waiting& waiting, std::optional<absl::Time> opens_at) {
  if (waiting.opens_at) openings_.erase({*waiting.opens_at, order});
  waiting.opens_at = opens_at;
  if (opens_at) openings_.emplace(*opens_at, order);
}

// Whoever was the first of a size and waits for room no more, there may be some for the next.
void WaitList::SetSize(const Order& order, Waiting& waiting, const std::string& size) {
  if (waiting.size == size) return;
  if (const auto left = without_room_.find(waiting.size); left != without_room_.end()) {
    const bool was_first = *left->second.begin() == order;
    left->second.erase(order);
    if (left->second.empty()) {
      without_room_.erase(left);
    } else if (was_first) {
      to_look_at_.insert(*left->second.begin());
    }
  }
  waiting.size = size;
  if (!size.empty()) without_room_[size].insert(order);
}

}  // namespace tp::loop
