#include "plan/room.h"

#include <algorithm>

namespace tp::plan {

void Room::Put(const JobClass& job_class) {
  Remove(job_class.id);
  if (job_class.ready.empty()) return;
  const auto& [submitted, step] = *job_class.ready.begin();
  Placed placed{.size = job_class.shape->size,
                .limit = job_class.key.limit.value_or(policy_.default_time_limit),
                .bucket = {job_class.key.priority, policy_.fair_share ? job_class.key.owner : ""},
                .member = {submitted, step, job_class.id}};
  Size& size = sizes_[placed.size];
  size.series = job_class.shape->series;
  size.by_limit[placed.limit][placed.bucket].insert(placed.member);
  priorities_[placed.bucket.first] += 1;
  places_.emplace(job_class.id, std::move(placed));
}

void Room::Remove(ClassId id) {
  const auto found = places_.find(id);
  if (found == places_.end()) return;
  const Placed& placed = found->second;
  const auto size = sizes_.find(placed.size);
  const auto limit = size->second.by_limit.find(placed.limit);
  const auto bucket = limit->second.find(placed.bucket);
  bucket->second.erase(placed.member);
  if (bucket->second.empty()) limit->second.erase(bucket);
  if (limit->second.empty()) size->second.by_limit.erase(limit);
  if (size->second.by_limit.empty()) sizes_.erase(size);
  const auto priority = priorities_.find(placed.bucket.first);
  if (--priority->second == 0) priorities_.erase(priority);
  places_.erase(found);
}

std::vector<std::string> Room::SizesOf(const std::set<std::string>& series) const {
  std::vector<std::string> sizes;
  for (const auto& [name, size] : sizes_) {
    const bool touches = std::any_of(size.series.begin(), size.series.end(),
                                     [&](const std::string& one) { return series.contains(one); });
    if (touches) sizes.push_back(name);
  }
  return sizes;
}

std::set<std::string> Room::Closure(std::set<std::string> series) const {
  for (size_t before = 0; before != series.size();) {
    before = series.size();
    for (const std::string& size : SizesOf(series)) {
      const std::set<std::string>& tied = sizes_.at(size).series;
      series.insert(tied.begin(), tied.end());
    }
  }
  return series;
}

std::optional<Room::Head> Room::FirstOf(const Bucket& bucket, const std::set<Member>& members, const Bounds& bounds,
                                        const core::Shares& shares, absl::Time now) const {
  for (const auto& [submitted, step, id] : members) {
    const Head head{.order = {.effective_priority = core::EffectivePriority(bucket.first, submitted, now, policy_),
                              .share = core::ShareOf(shares, bucket.second),
                              .submitted = submitted,
                              .step = step},
                    .id = id};
    if (!bounds.after || *bounds.after < head.order) return head;
  }
  return std::nullopt;
}

std::optional<Room::Head> Room::First(const std::string& size, const Bounds& bounds, const core::Shares& shares,
                                      absl::Time now) const {
  const auto found = sizes_.find(size);
  if (found == sizes_.end()) return std::nullopt;
  std::optional<Head> first;
  for (const auto& [limit, buckets] : found->second.by_limit) {
    if (limit >= bounds.limit) break;
    for (const auto& [bucket, members] : buckets) {
      const auto head = FirstOf(bucket, members, bounds, shares, now);
      if (head && (!first || *head < *first)) first = head;
    }
  }
  return first;
}

bool Room::Full(const std::string& size) const {
  const auto found = sizes_.find(size);
  return found != sizes_.end() && found->second.full;
}

void Room::SetFull(const std::string& size, bool full) {
  if (const auto found = sizes_.find(size); found != sizes_.end()) found->second.full = full;
}

std::optional<absl::Time> Room::NextAging(absl::Time now) const {
  // Of one priority the older one stays ahead, unless its owner used more.
  if (priorities_.size() < 2 && !policy_.fair_share) return std::nullopt;
  std::optional<absl::Time> next;
  for (const auto& [name, size] : sizes_) {
    for (const auto& [limit, buckets] : size.by_limit) {
      for (const auto& [bucket, members] : buckets) {
        const auto at = core::NextAging(bucket.first, std::get<absl::Time>(*members.begin()), now, policy_);
        if (at && (!next || *at < *next)) next = at;
      }
    }
  }
  return next;
}

std::set<std::string> Room::AllSeries() const {
  std::set<std::string> all;
  for (const auto& [name, size] : sizes_) all.insert(size.series.begin(), size.series.end());
  return all;
}

}  // namespace tp::plan
