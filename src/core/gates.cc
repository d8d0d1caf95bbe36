#include "core/gates.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/human_bytes.h"
#include "core/array.h"
#include "core/gate_text.h"
#include "core/resource.h"

namespace tp::core {
namespace {

const Step& DependedOn(const RunWithSteps& run, const Step& step) {
  return run.steps[static_cast<size_t>(step.spec.after->step)];
}

std::string Count(int64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

// --- Of the step itself ------------------------------------------------------------------------------

std::string_view ToWhat(AfterWhen when) {
  switch (when) {
    case AfterWhen::kSuccess:
      return "to succeed";
    case AfterWhen::kFailure:
      return "to fail";
    case AfterWhen::kAlways:
      return "to end";
  }
  return "";
}

std::string WaitsForRuns(const Run& run) {
  std::string sentence;
  for (const RunDependency& other : run.after) {
    if (other.outcome) continue;
    sentence += fmt::format("{}waits for {} {}", sentence.empty() ? "" : "; ", other.id, ToWhat(other.when));
  }
  return sentence;
}

std::string DependencySentence(const GateInput& in) {
  if (Dependency(in.run, in.step) == DependencyState::kWaiting) {
    if (!in.step.spec.after) return WaitsForRuns(in.run.run);
    const Step& other = DependedOn(in.run, in.step);
    return fmt::format("waits for step {} ({}), which is {}", other.ref.step + 1, other.spec.name, Name(other.state));
  }
  if (TaskIsDue(in.run, in.step, in.situation.now)) return "";
  return fmt::format("{} of its array are under way, and {} may be at once", Count(LiveTasks(in.run), "task"),
                     in.run.run.array_limit);
}

std::optional<GateVerdict> DependencyGate(const GateInput& in) {
  std::string sentence = DependencySentence(in);
  if (sentence.empty()) return std::nullopt;
  return GateVerdict{.gate = GateKind::kDependency,
                     .sentence = std::move(sentence),
                     .opens_at = std::nullopt,
                     .since = in.step.entered_at};
}

std::optional<GateVerdict> HeldGate(const GateInput& in) {
  const Hold& hold = in.step.hold;
  GateVerdict verdict{.gate = GateKind::kHeld, .sentence = "", .opens_at = std::nullopt, .since = std::nullopt};
  if (!hold.shape.empty()) {
    verdict.sentence = fmt::format("its shape is no longer valid: {}; change it with tp update --profile", hold.shape);
  } else if (hold.admin) {
    verdict.sentence = "held by an admin, who can release it";
  } else if (hold.owner) {
    verdict.sentence = "held by its owner: tp release lets it go";
  } else {
    return std::nullopt;
  }
  return verdict;
}

std::optional<GateVerdict> CooldownGate(const GateInput& in) {
  const auto& until = in.step.cooldown_until;
  if (!until || *until <= in.situation.now) return std::nullopt;
  return GateVerdict{
      .gate = GateKind::kCooldown,
      .sentence = fmt::format("it failed; retry {} starts in {} s", in.step.retry_count,
                              absl::ToInt64Seconds(absl::Ceil(*until - in.situation.now, absl::Seconds(1)))),
      .opens_at = until,
      .since = in.step.entered_at};
}

std::optional<GateVerdict> BackendGate(const GateInput& in) {
  const auto& until = in.step.backoff_until;
  if (!until || *until <= in.situation.now) return std::nullopt;
  return GateVerdict{
      .gate = GateKind::kBackend,
      .sentence = fmt::format("launch {} did not come up ({}); the next try is in {} s", in.step.attempts,
                              in.step.backoff_reason.empty() ? "no reason given" : in.step.backoff_reason,
                              absl::ToInt64Seconds(absl::Ceil(*until - in.situation.now, absl::Seconds(1)))),
      .opens_at = until,
      .since = in.step.entered_at};
}

// --- Windows -------------------------------------------------------------------------------------------

std::string WindowSentence(const GateInput& in) {
  const Situation& at = in.situation;
  const absl::TimeZone zone = at.schedule.front().windows.front().zone;
  std::string series;
  for (const SeriesHours& hours : at.schedule) series += (series.empty() ? "" : " and ") + hours.series;
  if (!at.window.open) {
    if (!at.window.edge) return fmt::format("the window of {} never opens: ask an admin", series);
    return fmt::format("the window of {} is closed; it opens {}", series, MomentText(*at.window.edge, zone));
  }
  const absl::Duration left = *at.window.edge - at.now;
  const absl::Duration needed = NeededOpen(at.schedule, at.window, RemainingOwnLimit(in.step));
  return fmt::format("the window of {} closes {}, in {}, and this job needs {}; a time limit of at most {} would fit",
                     series, MomentText(*at.window.edge, zone), LengthText(left), LengthText(needed),
                     LengthText(absl::Floor(left, absl::Minutes(1))));
}

std::optional<GateVerdict> WindowGate(const GateInput& in) {
  const Situation& at = in.situation;
  if (!in.shape || WindowOpen(at.schedule, at.window, RemainingOwnLimit(in.step), at.now)) return std::nullopt;
  return GateVerdict{.gate = GateKind::kWindow,
                     .sentence = WindowSentence(in),
                     .opens_at = at.window.open ? std::nullopt : at.window.edge,
                     .since = std::nullopt};
}

// --- Quota ---------------------------------------------------------------------------------------------

using QuotaCheck = bool (*)(const ResolvedShape&, const QuotaLimits&, const QuotaUse&);
using QuotaSentence = std::string (*)(const GateInput&);

bool Over(const std::optional<int64_t>& limit, int64_t used_then) {
  return limit && *limit != kNoLimit && used_then > *limit;
}

int64_t HeldOf(const QuotaUse& use, const std::string& series) {
  const auto found = use.series_gpus.find(series);
  return found == use.series_gpus.end() ? 0 : found->second;
}

int64_t NeededOf(const ResolvedShape& shape, const std::string& series) {
  int64_t cards = 0;
  for (const PoolShape& pool : shape.pools) cards += pool.series == series ? pool.cards() : 0;
  return cards;
}

// The first of the shape's series that is over its limit; nothing: none.
const std::string* SeriesOver(const ResolvedShape& shape, const QuotaLimits& limits, const QuotaUse& use) {
  for (const PoolShape& pool : shape.pools) {
    const auto limit = limits.series_gpus.find(pool.series);
    if (limit == limits.series_gpus.end()) continue;
    const int64_t needed = NeededOf(shape, pool.series);
    if (needed > 0 && Over(limit->second, HeldOf(use, pool.series) + needed)) return &pool.series;
  }
  return nullptr;
}

bool GpusClosed(const ResolvedShape& shape, const QuotaLimits& limits, const QuotaUse& use) {
  return shape.cards() > 0 && Over(limits.gpus, use.gpus + shape.cards());
}
bool SeriesClosed(const ResolvedShape& shape, const QuotaLimits& limits, const QuotaUse& use) {
  return SeriesOver(shape, limits, use) != nullptr;
}
bool JobsClosed(const ResolvedShape&, const QuotaLimits& limits, const QuotaUse& use) {
  return Over(limits.jobs, use.jobs + 1);
}
bool GpuHoursClosed(const ResolvedShape& shape, const QuotaLimits& limits, const QuotaUse& use) {
  if (!limits.gpu_hours || *limits.gpu_hours == kNoLimit) return false;
  return shape.cards() > 0 && use.month_gpu_ms / kMsPerHour >= *limits.gpu_hours;
}
bool StorageClosed(const ResolvedShape&, const QuotaLimits& limits, const QuotaUse& use) {
  if (!limits.storage_bytes || *limits.storage_bytes == kNoLimit) return false;
  return !use.storage || use.storage->bytes >= *limits.storage_bytes;
}

std::string InUse(int64_t used, int64_t limit, std::string_view what) {
  return fmt::format("{} of {} {}in use{}", used, limit, what,
                     used > limit ? fmt::format(" (over by {})", used - limit) : "");
}

// What there is to say of cards: of all, or of one series.
std::string CardsSentence(std::string_view what, int64_t used, int64_t needed, int64_t limit) {
  const std::string standing = fmt::format("{}: {}, this job needs {}", what, InUse(used, limit, ""), needed);
  if (needed > limit) return fmt::format("{}, more than the quota itself: an admin can raise it", standing);
  const int64_t released = used + needed - limit;
  return fmt::format("{}; starts when {} of them {} released", standing, released, released == 1 ? "is" : "are");
}

std::string GpusSentence(const GateInput& in) {
  return CardsSentence("your GPUs", in.situation.use.gpus, in.shape->cards(), *in.situation.limits.gpus);
}
std::string SeriesSentence(const GateInput& in) {
  const Situation& at = in.situation;
  const std::string& series = *SeriesOver(*in.shape, at.limits, at.use);
  return CardsSentence(fmt::format("your {} GPUs", series), HeldOf(at.use, series), NeededOf(*in.shape, series),
                       at.limits.series_gpus.at(series));
}
std::string JobsSentence(const GateInput& in) {
  const int64_t used = in.situation.use.jobs;
  const int64_t limit = *in.situation.limits.jobs;
  const std::string standing = fmt::format("your jobs: {}", InUse(used, limit, "slots "));
  if (limit == 0) return fmt::format("{}: the quota lets none start; an admin can raise it", standing);
  const int64_t ends = used + 1 - limit;
  return fmt::format("{}; starts when {} of them end{}", standing, ends == 1 ? "one" : std::to_string(ends),
                     ends == 1 ? "s" : "");
}
std::string GpuHoursSentence(const GateInput& in) {
  const int64_t limit = *in.situation.limits.gpu_hours;
  const std::string used =
      fmt::format("your GPU-hours: {} of {} used this month", HoursText(in.situation.use.month_gpu_ms), limit);
  if (limit == 0) return fmt::format("{}: the quota lets none start; an admin can raise it", used);
  return fmt::format("{}; the next month begins {}", used,
                     ClockText(in.situation.month_ends, in.situation.accounting_zone));
}
std::string StorageSentence(const GateInput& in) {
  const auto& storage = in.situation.use.storage;
  if (!storage) return "your storage has not been measured yet; waits for the first scan";
  return fmt::format("your storage: {} of {} used, measured {} ago; remove runs with tp rm", HumanBytes(storage->bytes),
                     HumanBytes(*in.situation.limits.storage_bytes),
                     LengthText(in.situation.now - storage->scanned_at));
}

struct QuotaGate {
  GateKind gate;
  QuotaCheck closed;
  QuotaSentence sentence;
};
constexpr QuotaGate kQuotaGates[] = {
    {GateKind::kQuotaGpus, GpusClosed, GpusSentence},
    {GateKind::kQuotaSeries, SeriesClosed, SeriesSentence},
    {GateKind::kQuotaJobs, JobsClosed, JobsSentence},
    {GateKind::kQuotaGpuHours, GpuHoursClosed, GpuHoursSentence},
    {GateKind::kQuotaStorage, StorageClosed, StorageSentence},
};

void AddQuotaGates(const GateInput& in, std::vector<GateVerdict>& closed) {
  if (!in.shape) return;
  for (const QuotaGate& gate : kQuotaGates) {
    if (!gate.closed(*in.shape, in.situation.limits, in.situation.use)) continue;
    const bool by_month = gate.gate == GateKind::kQuotaGpuHours && *in.situation.limits.gpu_hours > 0;
    closed.push_back({.gate = gate.gate,
                      .sentence = gate.sentence(in),
                      .opens_at = by_month ? std::optional(in.situation.month_ends) : std::nullopt,
                      .since = std::nullopt});
  }
}

// --- Room ----------------------------------------------------------------------------------------------

// Nodes and cards that are out of service, the first few by name.
std::string WithheldSentence(const GateInput& in) {
  constexpr size_t kNamed = 3;
  std::vector<std::string> why;
  for (const PoolShape& pool : in.shape->pools) {
    const std::vector<std::string> of_series = in.situation.capacity.WhyWithheld(pool.series);
    why.insert(why.end(), of_series.begin(), of_series.end());
  }
  if (why.empty()) return "";
  const size_t more = why.size() - std::min(why.size(), kNamed);
  why.resize(why.size() - more);
  return fmt::format(" ({}{})", fmt::join(why, "; "), more == 0 ? "" : fmt::format("; and {} more", more));
}

std::string CapacitySentence(const GateInput& in) {
  const Capacity& capacity = in.situation.capacity;
  std::string sentence;
  for (const PoolShape& pool : in.shape->pools) {
    if (!sentence.empty()) sentence += "; ";
    const bool cpu = pool.gpus_per_node == 0;
    const int64_t free = capacity.FreeCards(pool.series);
    const bool scattered = in.shape->pools.size() == 1 && !cpu && pool.cards() <= free;
    sentence += fmt::format("{} needs {}, {} of {} {} are free{}", pool.series,
                            cpu ? Count(pool.nodes, "node")
                                : fmt::format("{} x {}", Count(pool.nodes, "node"), Count(pool.gpus_per_node, "card")),
                            free, capacity.TotalCards(pool.series), cpu ? "places" : "cards",
                            scattered ? fmt::format(", but too few nodes have {} of them", pool.gpus_per_node) : "");
  }
  sentence += WithheldSentence(in);
  return sentence + (capacity.CouldEverFit(*in.shape)
                         ? "; starts when cards are released"
                         : "; more than the series has: change it with tp update --profile");
}

std::optional<GateVerdict> CapacityGate(const GateInput& in) {
  if (!in.shape || in.situation.capacity.HasRoom(*in.shape, {})) return std::nullopt;
  return GateVerdict{
      .gate = GateKind::kCapacity, .sentence = CapacitySentence(in), .opens_at = std::nullopt, .since = std::nullopt};
}

// Those whose cards this step would need too long.
std::optional<GateVerdict> OrderGate(const GateInput& in) {
  const Situation& at = in.situation;
  if (!in.shape || !at.capacity.HasRoom(*in.shape, {})) return std::nullopt;
  const absl::Duration limit = RemainingLimit(in.step, at.policy);
  const CardSet blocked = BlockedFor(at.reservations, in.step.ref, limit, at.now);
  if (at.capacity.HasRoom(*in.shape, {.freed = nullptr, .blocked = &blocked})) return std::nullopt;
  absl::Time start = absl::InfinitePast();
  for (const Reservation* reservation : at.reservations) {
    if (reservation->step != in.step.ref && at.now + limit > reservation->start) {
      start = std::max(start, reservation->start);
    }
  }
  return GateVerdict{
      .gate = GateKind::kOrder,
      .sentence = fmt::format("the free cards are reserved for a job ahead, which starts in {} at the latest; a time "
                              "limit below that would let this one start now",
                              LengthText(start - at.now)),
      .opens_at = std::nullopt,
      .since = std::nullopt};
}

}  // namespace

namespace {

DependencyState OnRun(const RunDependency& other) {
  if (!other.outcome) return DependencyState::kWaiting;
  const bool succeeded = *other.outcome == RunWord::kSucceeded;
  const bool failed = *other.outcome == RunWord::kFailed || *other.outcome == RunWord::kPartial;
  switch (other.when) {
    case AfterWhen::kSuccess:
      return succeeded ? DependencyState::kMet : DependencyState::kImpossible;
    case AfterWhen::kFailure:
      return failed ? DependencyState::kMet : DependencyState::kImpossible;
    case AfterWhen::kAlways:
      return DependencyState::kMet;
  }
  return DependencyState::kWaiting;
}

DependencyState OnRuns(const Run& run) {
  DependencyState all = DependencyState::kMet;
  for (const RunDependency& other : run.after) all = std::max(all, OnRun(other));
  return all;
}

}  // namespace

DependencyState Dependency(const RunWithSteps& run, const Step& step) {
  if (!step.spec.after) return OnRuns(run.run);
  return Dependency(step.spec.after->when, DependedOn(run, step).state);
}

DependencyState Dependency(AfterWhen when, JobState other) {
  if (!IsTerminal(other)) return DependencyState::kWaiting;
  switch (when) {
    case AfterWhen::kSuccess:
      return other == JobState::kSucceeded ? DependencyState::kMet : DependencyState::kImpossible;
    case AfterWhen::kFailure:
      return other == JobState::kFailed ? DependencyState::kMet : DependencyState::kImpossible;
    case AfterWhen::kAlways:
      return DependencyState::kMet;
  }
  return DependencyState::kWaiting;
}

std::string WhyNever(const RunWithSteps& run, const Step& step) {
  if (Dependency(run, step) != DependencyState::kImpossible) return "";
  if (step.spec.after) {
    const Step& other = DependedOn(run, step);
    return fmt::format("step {} ended {}, so this step can never run", other.spec.name, Name(other.state));
  }
  const auto other = std::find_if(run.run.after.begin(), run.run.after.end(), [](const RunDependency& dependency) {
    return OnRun(dependency) == DependencyState::kImpossible;
  });
  return fmt::format("{} ended {}, so this run, which waited for it {}, can never run", other->id,
                     Name(*other->outcome), ToWhat(other->when));
}

std::optional<absl::Time> OwnGatesOpenAt(const RunWithSteps& run, const Step& step, absl::Time now) {
  if (Dependency(run, step) == DependencyState::kWaiting || step.hold.owner || step.hold.admin) {
    return absl::InfiniteFuture();
  }
  std::optional<absl::Time> opens;
  for (const auto& until : {step.cooldown_until, step.backoff_until}) {
    if (until && *until > now) opens = std::max(*until, opens.value_or(*until));
  }
  // A task that cools down is looked at when that is over, whoever's turn it is now.
  if (!opens && !TaskIsDue(run, step, now)) return absl::InfiniteFuture();
  return opens;
}

bool WindowOpen(const Schedule& schedule, const WindowStanding& standing, std::optional<absl::Duration> remaining_limit,
                absl::Time now) {
  if (!standing.open) return false;
  if (!standing.edge) return true;
  return *standing.edge - now >= NeededOpen(schedule, standing, remaining_limit);
}

std::optional<GateKind> ClosedQuota(const ResolvedShape& shape, const QuotaLimits& limits, const QuotaUse& use) {
  for (const QuotaGate& gate : kQuotaGates) {
    if (gate.closed(shape, limits, use)) return gate.gate;
  }
  return std::nullopt;
}

std::vector<GateVerdict> ClosedGates(const GateInput& input) {
  std::vector<GateVerdict> closed;
  const auto add = [&](std::optional<GateVerdict> verdict) {
    if (verdict) closed.push_back(*std::move(verdict));
  };
  add(DependencyGate(input));
  add(HeldGate(input));
  add(CooldownGate(input));
  add(BackendGate(input));
  add(WindowGate(input));
  AddQuotaGates(input, closed);
  add(CapacityGate(input));
  add(OrderGate(input));
  return closed;
}

}  // namespace tp::core
