// When each of many is due: at most one time a key. Pure; not thread-safe.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/time/time.h"

namespace tp::loop {

template <typename Key>
class Timers {
 public:
  // In place of the time it had. Infinite: it is known, and never due.
  void Set(const Key& key, absl::Time at) {
    Drop(key);
    times_.emplace(key, at);
    if (at != absl::InfiniteFuture()) order_.emplace(at, key);
  }

  void Drop(const Key& key) {
    const auto found = times_.find(key);
    if (found == times_.end()) return;
    order_.erase({found->second, key});
    times_.erase(found);
  }

  void Clear() {
    times_.clear();
    order_.clear();
  }

  // All of them later by so much.
  void Move(absl::Duration by) {
    for (const auto& [key, at] : std::map<Key, absl::Time>(times_)) Set(key, at + by);
  }

  // Nothing: it is not known.
  std::optional<absl::Time> Of(const Key& key) const {
    const auto found = times_.find(key);
    return found == times_.end() ? std::nullopt : std::optional(found->second);
  }

  std::optional<absl::Time> Next() const {
    return order_.empty() ? std::nullopt : std::optional(order_.begin()->first);
  }

  // The first that is due, with its time.
  std::optional<std::pair<absl::Time, Key>> Due(absl::Time now) const {
    if (order_.empty() || order_.begin()->first > now) return std::nullopt;
    return *order_.begin();
  }

  std::vector<Key> AllDue(absl::Time now) const {
    std::vector<Key> due;
    for (auto one = order_.begin(); one != order_.end() && one->first <= now; ++one) due.push_back(one->second);
    return due;
  }

  const std::map<Key, absl::Time>& all() const { return times_; }

 private:
  std::map<Key, absl::Time> times_;
  std::set<std::pair<absl::Time, Key>> order_;
};

}  // namespace tp::loop
