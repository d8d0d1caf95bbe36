#include "core/fair_share.h"

#include <cmath>
#include <numbers>

namespace tp::core {

// What was used before decays; what is used meanwhile grows towards cards x half-life / ln 2.
double FairShare::DecayedTo(const Owned& owned, absl::Time now) const {
  const double left = std::exp2(-absl::FDivDuration(now - owned.as_of, half_life_));
  const double mean_life_s = absl::ToDoubleSeconds(half_life_) / std::numbers::ln2;
  return owned.gpu_seconds * left + static_cast<double>(owned.cards) * mean_life_s * (1 - left);
}

void FairShare::Hold(const std::string& owner, int64_t cards, absl::Time now) {
  Owned& owned = owned_[owner];
  owned.gpu_seconds = DecayedTo(owned, now);
  owned.cards += cards;
  owned.as_of = now;
}

std::map<std::string, double> FairShare::At(absl::Time now) const {
  std::map<std::string, double> shares;
  for (const auto& [owner, owned] : owned_) shares.emplace_hint(shares.end(), owner, DecayedTo(owned, now));
  return shares;
}

}  // namespace tp::core
