#include "cli/render/estimate.h"

#include <fmt/format.h>

#include "cli/render/time.h"

namespace tp::cli {
namespace {

// Less than that is neither early nor late.
constexpr absl::Duration kOnTime = absl::Minutes(1);

}  // namespace

std::string EstimatedStart(const v1::StartEstimate& estimate, absl::Time now) {
  if (!estimate.has_starts_at()) return "";
  const absl::Duration left = FromProto(estimate.starts_at()) - now;
  return left < absl::Seconds(1) ? "any moment" : "in " + ShortDuration(left);
}

std::string ErrorsText(const v1::EstimateErrors& errors) {
  const absl::Duration bias = FromProto(errors.bias());
  const std::string_view mostly = bias <= -kOnTime ? ", mostly earlier" : bias >= kOnTime ? ", mostly later" : "";
  return fmt::format("{} off in the median of {} start{}{}", ShortDuration(FromProto(errors.median_off())),
                     errors.starts(), errors.starts() == 1 ? "" : "s", mostly);
}

std::string EstimateSentence(const v1::StartEstimate& estimate, absl::Time now) {
  if (!estimate.has_starts_at()) return estimate.why_none().empty() ? "" : "no estimate: " + estimate.why_none();
  const std::string so_far = estimate.has_so_far() ? "so far " + ErrorsText(estimate.so_far()) : "none compared yet";
  const absl::Time at = FromProto(estimate.starts_at());
  const std::string when = at - now < absl::Seconds(1)
                               ? "at any moment"
                               : fmt::format("in about {}, at {}", ShortDuration(at - now), Rfc3339(at));
  return fmt::format("starts {} (estimate by time limits; {})", when, so_far);
}

}  // namespace tp::cli
