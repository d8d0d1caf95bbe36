#include "backends/node/circuit.h"

#include <algorithm>

#include <fmt/format.h>

namespace tp::node {
namespace {

constexpr absl::Duration kFirstPause = absl::Seconds(1);
constexpr absl::Duration kLongestPause = absl::Seconds(15);

// Coarse, so that the sentence does not change with each look.
std::string Roughly(absl::Duration length) {
  if (length >= absl::Hours(48)) return fmt::format(" for {} days", length / absl::Hours(24));
  if (length >= absl::Hours(1)) return fmt::format(" for {}h", length / absl::Hours(1));
  if (length >= absl::Minutes(1)) return fmt::format(" for {}m", length / absl::Minutes(1));
  return "";
}

}  // namespace

void Circuit::Succeeded(absl::Time now) {
  if (failures_ > 0 || since_ == absl::InfinitePast()) since_ = now;
  failures_ = 0;
  why_.clear();
}

void Circuit::Failed(absl::Time now, const std::string& why, double jitter) {
  if (failures_ == 0) since_ = now;
  why_ = why;
  const absl::Duration pause = std::min(kLongestPause, kFirstPause * (1 << std::min(failures_, 4)));
  ++failures_;
  pause_ = pause * (0.75 + 0.5 * jitter);
}

std::string Circuit::Sentence(const std::string& node, absl::Time now) const {
  const size_t colon = why_.find(": ");
  const std::string_view rest = colon == std::string::npos ? std::string_view() : std::string_view(why_).substr(colon);
  return fmt::format("{} {}{}{}", node, why_.substr(0, colon), Roughly(now - since_), rest);
}

}  // namespace tp::node
