// Virtual time: closures run one after the other, ordered by (time, order of scheduling). Nothing
// happens but what was scheduled, so a seed replays exactly.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "absl/time/time.h"

namespace tp::sim {

class Timeline {
 public:
  explicit Timeline(int64_t start_unix_us) : now_us_(start_unix_us) {}

  int64_t now_us() const { return now_us_; }
  absl::Time now() const { return absl::FromUnixMicros(now_us_); }
  // tpd's real-time clock, which somebody may set.
  absl::Time wall() const { return now() + wall_ahead_; }
  void SetWall(absl::Duration by) { wall_ahead_ += by; }
  int64_t executed() const { return executed_; }

  void At(int64_t at_us, std::function<void()> happen) {
    queue_.push_back({std::max(at_us, now_us_), next_++, std::move(happen)});
    std::push_heap(queue_.begin(), queue_.end(), Later);
  }
  void AtWall(absl::Time at, std::function<void()> happen) {
    At(absl::ToUnixMicros(at - wall_ahead_), std::move(happen));
  }
  void In(int64_t delay_us, std::function<void()> happen) { At(now_us_ + delay_us, std::move(happen)); }

  // The next thing happens; false where nothing is left.
  bool Step() {
    if (queue_.empty()) return false;
    std::pop_heap(queue_.begin(), queue_.end(), Later);
    Entry entry = std::move(queue_.back());
    queue_.pop_back();
    now_us_ = entry.at_us;
    ++executed_;
    entry.happen();
    return true;
  }

 private:
  struct Entry {
    int64_t at_us = 0;
    int64_t order = 0;
    std::function<void()> happen;
  };
  static bool Later(const Entry& a, const Entry& b) {
    return a.at_us != b.at_us ? a.at_us > b.at_us : a.order > b.order;
  }

  int64_t now_us_;
  absl::Duration wall_ahead_;
  int64_t next_ = 0;
  int64_t executed_ = 0;
  std::vector<Entry> queue_;
};

}  // namespace tp::sim
