#include "core/order.h"

#include <algorithm>

namespace tp::core {
namespace {

int64_t TimesAged(absl::Time submitted, absl::Time now, absl::Duration aging) {
  if (aging <= absl::ZeroDuration() || now <= submitted) return 0;
  absl::Duration rest;
  return absl::IDivDuration(now - submitted, aging, &rest);
}

int64_t MostAging(int32_t priority, const Policy& policy) {
  return std::max<int64_t>(0, std::min(policy.aging_cap, kMaxPriority - priority));
}

}  // namespace

int32_t EffectivePriority(int32_t priority, absl::Time submitted, absl::Time now, const Policy& policy) {
  const int64_t aged = std::min(TimesAged(submitted, now, policy.aging), MostAging(priority, policy));
  return priority + static_cast<int32_t>(aged);
}

std::optional<absl::Time> NextAging(int32_t priority, absl::Time submitted, absl::Time now, const Policy& policy) {
  const int64_t times = TimesAged(submitted, now, policy.aging);
  if (policy.aging <= absl::ZeroDuration() || times >= MostAging(priority, policy)) return std::nullopt;
  return submitted + (times + 1) * policy.aging;
}

}  // namespace tp::core
