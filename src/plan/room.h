// The classes that wait for room, by the room that they need. Of equal size all wait behind the first in
// order; of those that a reservation holds back, only smaller time limits are looked at again. Pure; not
// thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "core/fair_share.h"
#include "core/order.h"
#include "plan/job_class.h"

namespace tp::plan {

class Room {
 public:
  explicit Room(const core::Policy& policy) : policy_(policy) {}

  struct Head {
    core::QueueOrder order;
    ClassId id = 0;
    bool operator<(const Head& other) const { return order < other.order; }
  };

  // The class waits here, by the first of its ready steps. Again whenever that may be another.
  void Put(const JobClass& job_class);
  void Remove(ClassId id);

  // All sizes that need one of the series.
  std::vector<std::string> SizesOf(const std::set<std::string>& series) const;
  // These, and all that are tied to them by a size of several series.
  std::set<std::string> Closure(std::set<std::string> series) const;

  // The first in order of a size, later than `after`, whose time limit is below `limit`.
  struct Bounds {
    absl::Duration limit = absl::InfiniteDuration();
    std::optional<core::QueueOrder> after = std::nullopt;
  };
  std::optional<Head> First(const std::string& size, const Bounds& bounds, const core::Shares& shares,
                            absl::Time now) const;

  // Whether nothing of that size has room, since it was found so.
  bool Full(const std::string& size) const;
  const std::set<std::string>& SeriesOf(const std::string& size) const { return sizes_.at(size).series; }
  void SetFull(const std::string& size, bool full);

  // When a priority next rises so that the order may be another; nothing: never.
  std::optional<absl::Time> NextAging(absl::Time now) const;

  bool empty() const { return places_.empty(); }
  std::set<std::string> AllSeries() const;

 private:
  using Bucket = std::pair<int32_t, std::string>;  // priority, and the owner: within one the order is fixed
  using Member = std::tuple<absl::Time, core::StepRef, ClassId>;
  using Buckets = std::map<Bucket, std::set<Member>>;
  struct Size {
    std::set<std::string> series;
    std::map<absl::Duration, Buckets> by_limit;
    bool full = false;
  };
  struct Placed {
    std::string size;
    absl::Duration limit;
    Bucket bucket;
    Member member;
  };

  std::optional<Head> FirstOf(const Bucket& bucket, const std::set<Member>& members, const Bounds& bounds,
                              const core::Shares& shares, absl::Time now) const;

  const core::Policy& policy_;
  std::map<std::string, Size> sizes_;
  std::map<ClassId, Placed> places_;
  std::map<int32_t, int64_t> priorities_;  // of places_, counted
};

}  // namespace tp::plan
