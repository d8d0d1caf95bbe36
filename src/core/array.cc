#include "core/array.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>

#include "base/printable.h"
#include "base/status.h"

namespace tp::core {
namespace {

std::optional<int32_t> Number(std::string_view text, int32_t most) {
  int32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc{} && end == text.data() + text.size();
  const bool digits = !text.empty() && text.front() >= '0' && text.front() <= '9';
  if (!whole || !digits || value > most) return std::nullopt;
  return value;
}

// The text before the first `separator`; `rest` becomes what is behind it, or nothing.
std::string_view Split(std::string_view text, char separator, std::optional<std::string_view>& rest) {
  const size_t at = text.find(separator);
  if (at == std::string_view::npos) return text;
  rest = text.substr(at + 1);
  return text.substr(0, at);
}

struct Range {
  int32_t first = 0;
  int32_t last = 0;
  int32_t step = 1;
};

std::optional<Range> ParseRange(std::string_view text) {
  std::optional<std::string_view> step_text;
  std::optional<std::string_view> last_text;
  const std::string_view first_text = Split(Split(text, ':', step_text), '-', last_text);
  const auto first = Number(first_text, kMaxArrayIndex);
  const auto last = last_text ? Number(*last_text, kMaxArrayIndex) : first;
  const auto step = step_text ? Number(*step_text, kMaxArrayIndex) : std::optional<int32_t>(1);
  if (!first || !last || !step || *step == 0 || *last < *first || (step_text && !last_text)) return std::nullopt;
  return Range{*first, *last, *step};
}

absl::Status Wrong(std::string_view text, std::string_view why) {
  return InvalidArgument("--array {}: {}; write 0-31, 1,3,8-10 or 0-30:10, with %4 behind it for four at once",
                         Quoted(text), why);
}

// Nothing of its own holds it back.
bool IsReady(const Step& step, absl::Time now) {
  const auto past = [now](const std::optional<absl::Time>& until) { return !until || *until <= now; };
  return step.state == JobState::kQueued && !step.hold.owner && !step.hold.admin && past(step.cooldown_until) &&
         past(step.backoff_until);
}

int64_t Room(const RunWithSteps& run) { return run.run.array_limit - LiveTasks(run); }

}  // namespace

absl::StatusOr<ArraySpec> ParseArray(std::string_view text) {
  ArraySpec spec;
  std::optional<std::string_view> limit_text;
  std::optional<std::string_view> rest = Split(text, '%', limit_text);
  if (limit_text) {
    const auto limit = Number(*limit_text, kMaxArrayTasks);
    if (!limit || *limit == 0) {
      return Wrong(text, fmt::format("how many run at once is a number from 1 to {}", kMaxArrayTasks));
    }
    spec.limit = *limit;
  }
  std::set<int32_t> indices;
  while (rest) {
    const std::string_view all = *rest;
    rest.reset();
    const std::string_view part = Split(all, ',', rest);
    const auto range = ParseRange(part);
    if (!range) {
      return Wrong(text, fmt::format("{} is no index or range of them, up to {}", Quoted(part), kMaxArrayIndex));
    }
    for (int64_t index = range->first; index <= range->last; index += range->step) {
      indices.insert(static_cast<int32_t>(index));
      if (indices.size() > kMaxArrayTasks) return Wrong(text, fmt::format("it has at most {} tasks", kMaxArrayTasks));
    }
  }
  spec.indices.assign(indices.begin(), indices.end());
  return spec;
}

bool IsArray(const RunWithSteps& run) { return !run.steps.empty() && run.steps.front().spec.array_index.has_value(); }

int64_t LiveTasks(const RunWithSteps& run) {
  return std::count_if(run.steps.begin(), run.steps.end(),
                       [](const Step& step) { return static_cast<bool>(step.attempt); });
}

bool TaskIsDue(const RunWithSteps& run, const Step& step, absl::Time now) {
  if (run.run.array_limit == 0 || !step.spec.array_index) return true;
  int64_t room = Room(run);
  for (const Step& other : run.steps) {
    if (other.ref.step >= step.ref.step || room <= 0) break;
    if (IsReady(other, now)) --room;
  }
  return room > 0;
}

std::vector<int32_t> TasksAtTheEdge(const RunWithSteps& run, absl::Time now) {
  std::vector<int32_t> edge;
  if (run.run.array_limit == 0 || !IsArray(run)) return edge;
  const int64_t room = Room(run);
  int64_t position = 0;
  for (const Step& step : run.steps) {
    if (!IsReady(step, now)) continue;
    if (position == room - 1 || position == room) edge.push_back(step.ref.step);
    if (position++ > room) break;
  }
  return edge;
}

}  // namespace tp::core
