#include "core/fair_share.h"

#include <algorithm>
#include <cmath>

namespace tp::core {
namespace {

// A double reaches up to 2^1023: this leaves room for 2^63 gpu_ms at once and for many of them.
constexpr int64_t kMostHalfLives = 512;

// Exact as long as the result is a normal number.
double Doubled(double value, int64_t times) {
  return std::ldexp(value, static_cast<int>(std::clamp<int64_t>(times, -4 * kMostHalfLives, kMostHalfLives)));
}

}  // namespace

double ShareOf(const Shares& shares, const std::string& owner) {
  const auto found = shares.find(owner);
  return found == shares.end() ? 0 : found->second;
}

FairShare::Moment FairShare::MomentOf(absl::Time at) const {
  absl::Duration rest;
  const int64_t whole = absl::IDivDuration(at - absl::UnixEpoch(), half_life_, &rest);
  return {whole, absl::FDivDuration(rest, half_life_)};
}

void FairShare::MoveReference(int64_t whole) {
  for (auto& [owner, gpu_ms] : gpu_ms_at_reference_) gpu_ms = Doubled(gpu_ms, reference_ - whole);
  reference_ = whole;
}

void FairShare::Add(const std::string& owner, absl::Time at, int64_t gpu_ms) {
  const Moment moment = MomentOf(at);
  if (moment.whole - reference_ > kMostHalfLives) MoveReference(moment.whole);
  gpu_ms_at_reference_[owner] +=
      Doubled(static_cast<double>(gpu_ms) * std::exp2(moment.rest), moment.whole - reference_);
}

Shares FairShare::SharesAt(absl::Time now, const std::map<std::string, int64_t>& live_gpu_ms) const {
  const Moment moment = MomentOf(now);
  Shares shares;
  for (const auto& [owner, gpu_ms] : gpu_ms_at_reference_) {
    // A correction counts more than what it takes back, which has decayed for longer.
    shares[owner] = std::max(0.0, Doubled(gpu_ms * std::exp2(-moment.rest), reference_ - moment.whole) / 1000);
  }
  for (const auto& [owner, gpu_ms] : live_gpu_ms) shares[owner] += static_cast<double>(gpu_ms) / 1000;
  return shares;
}

}  // namespace tp::core
