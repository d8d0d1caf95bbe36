// What owners used of the cards lately, for `fair_share` (DESIGN 6, order): gpu_seconds that count half after
// each half-life. Pure; not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "absl/time/time.h"

namespace tp::core {

class FairShare {
 public:
  explicit FairShare(absl::Duration half_life) : half_life_(half_life) {}

  // From `now` on the owner holds so many more cards, or fewer. `now` never goes back.
  void Hold(const std::string& owner, int64_t cards, absl::Time now);

  // Decayed gpu_seconds by owner.
  std::map<std::string, double> At(absl::Time now) const;

 private:
  struct Owned {
    double gpu_seconds = 0;  // decayed to `as_of`
    int64_t cards = 0;       // held since then
    absl::Time as_of;
  };

  double DecayedTo(const Owned& owned, absl::Time now) const;

  absl::Duration half_life_;
  std::map<std::string, Owned> owned_;
};

}  // namespace tp::core
