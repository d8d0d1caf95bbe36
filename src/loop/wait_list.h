// The queued steps of a loop: in which order they are looked at, and when. What a look costs follows what
// changed: of the steps that wait for room only the first of each size is looked at when cards are
// released, and the next one only once that has left. Pure; not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "absl/time/time.h"
#include "core/ids.h"

namespace tp::loop {

class WaitList {
 public:
  using Order = std::tuple<int32_t, absl::Time, core::StepRef>;  // -priority, submission, id

  // To be looked at. Not in the list yet.
  void Add(const Order& order);
  // It waits no more; nothing where it did not.
  void Remove(core::StepRef ref);

  // A gate of its own may have opened.
  void Look(core::StepRef ref);
  void LookAtAll();
  // Cards were released.
  void LookForRoom();
  // Gates that open by themselves have, up to `now`.
  void LookAtOpened(absl::Time now);

  // The first that is to be looked at; it counts as looked at, and Keep or Remove says what came of it.
  std::optional<core::StepRef> Take();
  // It goes on waiting. `opens_at`: when a gate may open by itself. `size`: that of its shape where there
  // is no room for it, so that all of one size wait behind the first of them; empty: room is not what it
  // waits for.
  void Keep(core::StepRef ref, std::optional<absl::Time> opens_at, const std::string& size);

  bool AnyToLookAt() const { return !to_look_at_.empty(); }
  std::optional<absl::Time> NextOpening() const;

 private:
  struct Waiting {
    std::optional<absl::Time> opens_at;
    std::string size;
  };

  void SetOpening(const Order& order, Waiting& waiting, std::optional<absl::Time> opens_at);
  void SetSize(const Order& order, Waiting& waiting, const std::string& size);

  std::map<Order, Waiting> waiting_;
  std::map<core::StepRef, Order> order_of_;
  std::set<std::pair<absl::Time, Order>> openings_;      // of waiting_
  std::map<std::string, std::set<Order>> without_room_;  // of waiting_, by size
  std::set<Order> to_look_at_;
};

}  // namespace tp::loop
