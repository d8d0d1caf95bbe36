#include "core/quota_use.h"

#include <algorithm>

namespace tp::core {

QuotaUsage::Live QuotaUsage::LiveOf(const Attempt& attempt) {
  Live live;
  for (const PoolPlacement& pool : attempt.placement) {
    live.gpus += pool.cards();
    if (pool.cards() > 0) live.series_gpus[pool.series] += pool.cards();
  }
  if (!attempt.meter) return live;
  live.metered_from = attempt.meter->seen_at;
  if (attempt.meter->closed_unix_us)
    live.metered_to = *live.metered_from + absl::Milliseconds(MeteredMs(*attempt.meter));
  return live;
}

void QuotaUsage::Add(QuotaUse& use, const Live& live, int64_t sign) {
  use.jobs += sign;
  use.gpus += sign * live.gpus;
  for (const auto& [series, gpus] : live.series_gpus) {
    const auto held = use.series_gpus.try_emplace(series, 0).first;
    held->second += sign * gpus;
    if (held->second == 0) use.series_gpus.erase(held);
  }
}

bool QuotaUsage::Follow(const std::string& owner, const Step& step) {
  if (!step.attempt && !owned_.contains(owner)) return false;
  Owned& owned = owned_[owner];
  const auto found = owned.live.find(step.ref);
  const bool held = found != owned.live.end();
  if (held) {
    Add(owned.use, found->second, -1);
    owned.live.erase(found);
  }
  if (step.attempt) {
    const Live& live = owned.live.emplace(step.ref, LiveOf(*step.attempt)).first->second;
    Add(owned.use, live, +1);
  } else if (owned.live.empty()) {
    owned_.erase(owner);
  }
  return held && !step.attempt;
}

void QuotaUsage::AddSettled(const std::string& month, const std::string& owner, int64_t gpu_ms) {
  settled_[{month, owner}] += gpu_ms;
}

int64_t QuotaUsage::MeteredSince(absl::Time since, const Owned& owned, absl::Time now) {
  int64_t gpu_ms = 0;
  for (const auto& [ref, live] : owned.live) {
    if (!live.metered_from) continue;
    const absl::Time from = std::max(*live.metered_from, since);
    const absl::Time to = std::min(live.metered_to.value_or(now), now);
    if (from < to) gpu_ms += absl::ToInt64Milliseconds(to - from) * live.gpus;
  }
  return gpu_ms;
}

QuotaUse QuotaUsage::UseOf(const std::string& owner, absl::Time now) const {
  QuotaUse use;
  const Month month = MonthOf(now, zone_);
  if (const auto owned = owned_.find(owner); owned != owned_.end()) {
    use = owned->second.use;
    use.month_gpu_ms = MeteredSince(month.begins, owned->second, now);
  }
  if (const auto settled = settled_.find({month.name, owner}); settled != settled_.end()) {
    use.month_gpu_ms += settled->second;
  }
  const auto all = storage_.find(kEverybody);
  if (all != storage_.end()) use.storage = StorageUse{.bytes = 0, .scanned_at = all->second.scanned_at};
  if (const auto storage = storage_.find(owner); storage != storage_.end()) use.storage = storage->second;
  return use;
}

std::map<std::string, int64_t> QuotaUsage::LiveGpuMs(absl::Time now) const {
  std::map<std::string, int64_t> live;
  for (const auto& [owner, owned] : owned_) {
    if (const int64_t gpu_ms = MeteredSince(absl::InfinitePast(), owned, now); gpu_ms > 0) live.emplace(owner, gpu_ms);
  }
  return live;
}

std::set<std::string> QuotaUsage::Owners() const {
  std::set<std::string> owners;
  for (const auto& [owner, owned] : owned_) owners.insert(owner);
  for (const auto& [key, gpu_ms] : settled_) owners.insert(key.second);
  for (const auto& [owner, use] : storage_) owners.insert(owner);
  owners.erase(kEverybody);
  return owners;
}

}  // namespace tp::core
