// Who used how much of the cards lately (DESIGN 6, order): settled use counts half after each half-life, what
// runs counts in full. Settled use is kept at one common time, so that nothing is worked out anew as time
// goes on: all of it decays alike. Pure; not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "absl/time/time.h"

namespace tp::core {

// Decayed gpu_seconds by owner; whoever is not in it has used none.
using Shares = std::map<std::string, double>;

double ShareOf(const Shares& shares, const std::string& owner);

class FairShare {
 public:
  // Above zero.
  explicit FairShare(absl::Duration half_life) : half_life_(half_life) {}

  // Settled use that ended at `at`, in any order; a correction may take back.
  void Add(const std::string& owner, absl::Time at, int64_t gpu_ms);
  Shares SharesAt(absl::Time now, const std::map<std::string, int64_t>& live_gpu_ms) const;

 private:
  // A moment in half-lives since the Unix epoch.
  struct Moment {
    int64_t whole = 0;
    double rest = 0;
  };

  Moment MomentOf(absl::Time at) const;
  void MoveReference(int64_t whole);

  absl::Duration half_life_;
  int64_t reference_ = 0;  // in whole half-lives since the Unix epoch
  std::map<std::string, double> gpu_ms_at_reference_;
};

}  // namespace tp::core
