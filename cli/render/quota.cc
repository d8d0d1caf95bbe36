#include "cli/render/quota.h"

#include <cstdint>
#include <map>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/human_bytes.h"
#include "cli/limits.h"
#include "cli/render/color.h"
#include "cli/render/fields.h"
#include "cli/render/table.h"
#include "cli/render/text.h"
#include "cli/render/time.h"

namespace tp::cli {
namespace {

constexpr int64_t kGpuMsPerHour = 3'600'000;
constexpr std::string_view kUnlimited = "none";

std::string Count(int64_t count) { return std::to_string(count); }
std::string GpuHours(int64_t gpu_ms) {
  return fmt::format("{:.1f}", static_cast<double>(gpu_ms) / static_cast<double>(kGpuMsPerHour));
}

// One kind of limit and what is used of it, in the unit of the use.
struct Quota {
  std::string name;
  std::optional<int64_t> used;  // absent: not measured
  std::optional<int64_t> limit;
  int64_t unit = 1;  // of the use, in one of the limit
  std::string (*text)(int64_t used) = Count;

  bool limited() const { return limit && *limit != kNoLimit; }
  bool over() const { return limited() && used && *used / unit >= *limit && *used > *limit * unit; }
  std::string used_text() const { return used ? text(*used) : "?"; }
  std::string limit_text() const {
    if (!limited()) return std::string(kUnlimited);
    return unit == 1 ? text(*limit) : Count(*limit);
  }
};

// The series by name, those with a limit and those in use.
std::vector<Quota> SeriesQuotas(const v1::Standing& standing) {
  std::map<std::string, Quota> by_series;
  for (const auto& [series, limit] : standing.limits().series_gpus()) {
    by_series[series] = {.name = series, .used = 0, .limit = limit};
  }
  for (const auto& [series, used] : standing.use().series_gpus()) {
    by_series[series].name = series;
    by_series[series].used = used;
  }
  std::vector<Quota> quotas;
  quotas.reserve(by_series.size());
  for (auto& [series, quota] : by_series) quotas.push_back(std::move(quota));
  return quotas;
}

template <typename Limits>
std::optional<int64_t> Present(bool has, const Limits& limits, int64_t (Limits::*get)() const) {
  return has ? std::optional((limits.*get)()) : std::nullopt;
}

Quota GpuQuota(const v1::Standing& standing) {
  const v1::QuotaLimits& limits = standing.limits();
  return {.name = "gpus",
          .used = standing.use().gpus(),
          .limit = Present(limits.has_gpus(), limits, &v1::QuotaLimits::gpus)};
}

Quota JobQuota(const v1::Standing& standing) {
  const v1::QuotaLimits& limits = standing.limits();
  return {.name = "jobs",
          .used = standing.use().jobs(),
          .limit = Present(limits.has_jobs(), limits, &v1::QuotaLimits::jobs)};
}

Quota GpuHourQuota(const v1::Standing& standing) {
  const v1::QuotaLimits& limits = standing.limits();
  return {.name = "gpu-hours",
          .used = standing.use().month_gpu_ms(),
          .limit = Present(limits.has_gpu_hours(), limits, &v1::QuotaLimits::gpu_hours),
          .unit = kGpuMsPerHour,
          .text = GpuHours};
}

Quota StorageQuota(const v1::Standing& standing) {
  const v1::QuotaLimits& limits = standing.limits();
  const v1::QuotaUse& use = standing.use();
  return {.name = "storage",
          .used = use.has_storage() ? std::optional(use.storage().bytes()) : std::nullopt,
          .limit = Present(limits.has_storage_bytes(), limits, &v1::QuotaLimits::storage_bytes),
          .text = HumanBytes};
}

std::vector<Quota> QuotasOf(const v1::Standing& standing) {
  std::vector<Quota> quotas = {GpuQuota(standing)};
  for (Quota& series : SeriesQuotas(standing)) quotas.push_back(std::move(series));
  quotas.push_back(JobQuota(standing));
  quotas.push_back(GpuHourQuota(standing));
  quotas.push_back(StorageQuota(standing));
  return quotas;
}

std::string OverText(const Quota& quota) {
  return quota.over() ? fmt::format(" (over by {})", quota.text(*quota.used - *quota.limit * quota.unit)) : "";
}

Cell UseCell(const Quota& quota) {
  if (!quota.limited()) return {quota.used_text()};
  return {fmt::format("{}/{}", quota.used_text(), quota.limit_text()), quota.over() ? Color::kRed : Color::kNone};
}

std::string UseTable(const v1::Standing& standing, const Terminal& terminal) {
  Table table({{"QUOTA"}, {"USED", Align::kRight}, {"LIMIT", Align::kRight}, {"OVER BY", Align::kRight}});
  for (const Quota& quota : QuotasOf(standing)) {
    const std::string over = quota.over() ? quota.text(*quota.used - *quota.limit * quota.unit) : "";
    table.AddRow(
        {{quota.name}, {quota.used ? quota.used_text() : "not measured"}, {quota.limit_text()}, {over, Color::kRed}});
  }
  return table.Render(terminal);
}

std::string RuleTable(const v1::Standing& standing, const Terminal& terminal, absl::Time now) {
  if (standing.rules().empty()) return "";
  Table table({{"RULE", Align::kRight},
               {"FROM"},
               {"UNTIL"},
               {"LIMITS", Align::kLeft, true},
               {"SET", Align::kLeft, false, 1},
               {"BY", Align::kLeft, false, 2}});
  const auto time = [now](bool has, const google::protobuf::Timestamp& at) {
    return has ? RelativeTime(FromProto(at), now) : std::string();
  };
  for (const v1::QuotaRule& rule : standing.rules()) {
    table.AddRow({{Count(rule.id())},
                  {time(rule.has_from(), rule.from())},
                  {time(rule.has_until(), rule.until())},
                  {LimitsText(rule.limits())},
                  {time(rule.has_set_at(), rule.set_at())},
                  {rule.set_by()}});
  }
  return table.Render(terminal);
}

std::string SeriesText(const v1::Standing& standing) {
  std::vector<std::string> texts;
  for (const Quota& quota : SeriesQuotas(standing)) {
    texts.push_back(fmt::format("{} {}", quota.name, UseCell(quota).text));
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

// The defaults limit everybody and are used by nobody.
std::string DefaultSeries(const v1::QuotaLimits& limits) {
  v1::QuotaLimits series;
  *series.mutable_series_gpus() = limits.series_gpus();
  return LimitsText(series);
}

std::string DefaultText(bool has, int64_t limit, std::string (*text)(int64_t)) {
  return has && limit != kNoLimit ? text(limit) : "";
}

}  // namespace

std::string StandingSentence(const v1::Standing& standing) {
  std::vector<std::string> texts;
  for (const Quota& quota : QuotasOf(standing)) {
    if (!quota.limited()) continue;
    const std::string used = quota.used ? quota.used_text() : "not measured";
    texts.push_back(fmt::format("{} {}/{}{}", quota.name, used, quota.limit_text(), OverText(quota)));
  }
  return texts.empty() ? "no limits" : fmt::format("{}", fmt::join(texts, ", "));
}

std::string LimitsText(const v1::QuotaLimits& limits) {
  v1::Standing standing;
  *standing.mutable_limits() = limits;
  std::vector<std::string> texts;
  for (const Quota& quota : QuotasOf(standing)) {
    if (quota.limit) texts.push_back(fmt::format("{} {}", quota.name, quota.limit_text()));
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

std::string StandingPage(const v1::GetStandingResponse& response, const Terminal& terminal, absl::Time now) {
  const v1::Standing& standing = response.standing();
  std::string page =
      Paint(EscapeControl(standing.user()), Color::kBold, terminal.colors) + "\n" + UseTable(standing, terminal);
  const std::string rules = RuleTable(standing, terminal, now);
  page += rules.empty() ? "" : "\n" + rules;
  const std::string defaults = LimitsText(response.defaults());
  Fields fields(0, terminal);
  fields.Add("defaults", defaults.empty() ? "no limits" : defaults);
  const v1::QuotaUse& use = standing.use();
  if (use.has_storage()) fields.Add("storage", "measured " + Moment(use.storage().scanned_at(), now));
  return page + "\n" + fields.text();
}

std::string QuotaTable(const std::vector<v1::Standing>& standings, const v1::QuotaLimits& defaults,
                       const Terminal& terminal) {
  Table table({{"USER"},
               {"GPUS", Align::kRight},
               {"JOBS", Align::kRight},
               {"GPU-HOURS", Align::kRight},
               {"STORAGE", Align::kRight},
               {"SERIES", Align::kLeft, true},
               {"RULES", Align::kRight, false, 1}});
  table.AddRow({{"(default)", Color::kDim},
                {DefaultText(defaults.has_gpus(), defaults.gpus(), Count)},
                {DefaultText(defaults.has_jobs(), defaults.jobs(), Count)},
                {DefaultText(defaults.has_gpu_hours(), defaults.gpu_hours(), Count)},
                {DefaultText(defaults.has_storage_bytes(), defaults.storage_bytes(), HumanBytes)},
                {DefaultSeries(defaults)},
                {""}});
  for (const v1::Standing& standing : standings) {
    table.AddRow({{standing.user()},
                  UseCell(GpuQuota(standing)),
                  UseCell(JobQuota(standing)),
                  UseCell(GpuHourQuota(standing)),
                  UseCell(StorageQuota(standing)),
                  {SeriesText(standing)},
                  {Count(standing.rules_size())}});
  }
  return table.Render(terminal);
}

}  // namespace tp::cli
