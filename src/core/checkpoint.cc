#include "core/checkpoint.h"

#include <algorithm>
#include <array>
#include <cctype>

#include <fmt/format.h>

namespace tp::core {
namespace {

// A warning comes this long before the window closes, and only of work that is at least as old.
constexpr absl::Duration kWarnAhead = absl::Minutes(30);

constexpr std::array<std::string_view, 6> kSuffixes = {".ckpt", ".pt", ".pth", ".safetensors", ".distcp", ".orbax"};
constexpr std::array<std::string_view, 4> kUnfinished = {".tmp", ".part", ".partial", ".incomplete"};

std::string Lower(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

template <size_t n>
bool EndsWithAny(std::string_view text, const std::array<std::string_view, n>& suffixes) {
  return std::any_of(suffixes.begin(), suffixes.end(), [&](std::string_view suffix) { return text.ends_with(suffix); });
}

std::string Rounded(absl::Duration duration) {
  const absl::Duration unit = duration < absl::Minutes(10) ? absl::Seconds(1) : absl::Minutes(1);
  return absl::FormatDuration(absl::Trunc(duration, unit));
}

}  // namespace

bool IsCheckpointPath(std::string_view path) {
  const std::string lower = Lower(path);
  const std::string_view name = std::string_view(lower).substr(lower.rfind('/') + 1);
  if (name.empty() || name.front() == '.' || EndsWithAny(name, kUnfinished)) return false;
  return lower.find("checkpoint") != std::string::npos || lower.find("ckpt") != std::string::npos ||
         EndsWithAny(name, kSuffixes);
}

std::optional<RunningSpan> SpanOf(const Step& step, absl::Time now) {
  if (step.attempt) {
    if (!step.attempt->meter) return std::nullopt;
    return RunningSpan{step.attempt->meter->seen_at, now};
  }
  if (step.past.empty() || step.past.back().metered_ms == 0) return std::nullopt;
  const PastAttempt& last = step.past.back();
  return RunningSpan{last.ended_at - absl::Milliseconds(last.metered_ms), last.ended_at};
}

absl::Duration WorkAtRisk(const CheckpointSight& sight, const RunningSpan& span) {
  const absl::Time saved = sight.newest ? std::max(sight.newest->written_at, span.from) : span.from;
  return std::max(span.until - saved, absl::ZeroDuration());
}

std::string LossSentence(const CheckpointSight& sight, const RunningSpan& span) {
  const std::string again = fmt::format("{} of work is done again", Rounded(WorkAtRisk(sight, span)));
  if (!sight.newest) return fmt::format("no checkpoint beneath $TP_OUTPUT_DIR: {}", again);
  if (sight.newest->written_at < span.from) {
    return fmt::format("no checkpoint since it started, the newest is {}: {}", sight.newest->path, again);
  }
  return fmt::format("newest checkpoint {}: {}", sight.newest->path, again);
}

std::string WindowWarning(const CheckpointSight& sight, const RunningSpan& span, absl::Time closes_at) {
  const absl::Duration left = closes_at - span.until;
  const absl::Duration at_risk = WorkAtRisk(sight, span);
  if (left > kWarnAhead || at_risk < kWarnAhead) return "";
  return fmt::format(
      "its window closes in {} and it has saved no checkpoint for {}: that work is lost unless it saves "
      "one when it is warned",
      Rounded(left), Rounded(at_risk));
}

}  // namespace tp::core
