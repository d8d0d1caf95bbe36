#include "api/quota_convert.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "api/convert.h"
#include "api/errors.h"
#include "auth/identity.h"
#include "base/printable.h"

namespace tp::api {
namespace {

// Far above any cluster, and far from where sums and milliseconds overflow.
constexpr int64_t kMaxCount = 1'000'000'000;
constexpr int64_t kMaxBytes = int64_t{1} << 60;
constexpr int kMaxSeries = 256;
constexpr size_t kMaxSeriesName = 256;

v1::QuotaUse UseMessage(const core::QuotaUse& use) {
  v1::QuotaUse to;
  to.set_gpus(use.gpus);
  to.mutable_series_gpus()->insert(use.series_gpus.begin(), use.series_gpus.end());
  to.set_jobs(use.jobs);
  to.set_month_gpu_ms(use.month_gpu_ms);
  if (use.storage) {
    to.mutable_storage()->set_bytes(use.storage->bytes);
    *to.mutable_storage()->mutable_scanned_at() = ToProto(use.storage->scanned_at);
  }
  return to;
}

v1::QuotaRule RuleMessage(const core::QuotaRule& rule) {
  v1::QuotaRule to;
  to.set_id(rule.id);
  if (rule.from) *to.mutable_from() = ToProto(*rule.from);
  if (rule.until) *to.mutable_until() = ToProto(*rule.until);
  *to.mutable_limits() = ToProto(rule.limits);
  *to.mutable_set_at() = ToProto(rule.set_at);
  to.set_set_by(rule.set_by);
  return to;
}

absl::StatusOr<std::optional<int64_t>> ParseLimit(std::string_view field, bool present, int64_t limit,
                                                  int64_t largest) {
  if (!present) return std::optional<int64_t>();
  if (limit >= core::kNoLimit && limit <= largest) return std::optional<int64_t>(limit);
  return FieldError(fmt::format("limits.{}", field), "{} is a number from 0 to {}, or none (-1)", field, largest);
}

absl::StatusOr<core::QuotaLimits> ParseLimits(const v1::QuotaLimits& from) {
  core::QuotaLimits to;
  TP_ASSIGN_OR_RETURN(to.gpus, ParseLimit("gpus", from.has_gpus(), from.gpus(), kMaxCount));
  TP_ASSIGN_OR_RETURN(to.jobs, ParseLimit("jobs", from.has_jobs(), from.jobs(), kMaxCount));
  TP_ASSIGN_OR_RETURN(to.gpu_hours, ParseLimit("gpu_hours", from.has_gpu_hours(), from.gpu_hours(), kMaxCount));
  TP_ASSIGN_OR_RETURN(to.storage_bytes,
                      ParseLimit("storage_bytes", from.has_storage_bytes(), from.storage_bytes(), kMaxBytes));
  if (from.series_gpus_size() > kMaxSeries) {
    return FieldError("limits.series_gpus", "limits of {} series, at most {} are taken", from.series_gpus_size(),
                      kMaxSeries);
  }
  for (const auto& [series, gpus] : from.series_gpus()) {
    if (series.empty() || series.size() > kMaxSeriesName) {
      return FieldError("limits.series_gpus", "{} is no series: tp series lists them", Quoted(series));
    }
    TP_ASSIGN_OR_RETURN(const auto limit, ParseLimit("series_gpus", true, gpus, kMaxCount));
    to.series_gpus[series] = *limit;
  }
  return to;
}

constexpr std::string_view kSeriesKey = "series_gpus.";

bool AddKey(std::string_view name, core::QuotaKeys& keys) {
  const std::pair<std::string_view, bool*> known[] = {{"*", &keys.all},
                                                      {"gpus", &keys.gpus},
                                                      {"jobs", &keys.jobs},
                                                      {"gpu_hours", &keys.gpu_hours},
                                                      {"storage_bytes", &keys.storage_bytes}};
  for (const auto& [key, flag] : known) {
    if (name != key) continue;
    *flag = true;
    return true;
  }
  if (name.size() <= kSeriesKey.size() || name.substr(0, kSeriesKey.size()) != kSeriesKey) return false;
  keys.series.emplace(name.substr(kSeriesKey.size()));
  return true;
}

bool Contradict(const core::QuotaKeys& clear, const core::QuotaLimits& set) {
  return (clear.gpus && set.gpus) || (clear.jobs && set.jobs) || (clear.gpu_hours && set.gpu_hours) ||
         (clear.storage_bytes && set.storage_bytes) ||
         std::any_of(clear.series.begin(), clear.series.end(),
                     [&](const std::string& series) { return set.series_gpus.contains(series); });
}

absl::StatusOr<core::QuotaKeys> ParseClear(const v1::SetQuotaRequest& request, const core::QuotaLimits& set) {
  core::QuotaKeys keys;
  if (request.clear_size() > kMaxSeries) {
    return FieldError("clear", "{} keys, at most {} are taken", request.clear_size(), kMaxSeries);
  }
  for (const std::string& name : request.clear()) {
    if (AddKey(name, keys)) continue;
    return FieldError("clear", "{} is no limit: gpus, series_gpus.NAME, jobs, gpu_hours, storage_bytes, or * for all",
                      Quoted(name));
  }
  if (Contradict(keys, set)) return FieldError("clear", "a limit is either set or cleared");
  return keys;
}

}  // namespace

v1::QuotaLimits ToProto(const core::QuotaLimits& limits) {
  v1::QuotaLimits to;
  if (limits.gpus) to.set_gpus(*limits.gpus);
  to.mutable_series_gpus()->insert(limits.series_gpus.begin(), limits.series_gpus.end());
  if (limits.jobs) to.set_jobs(*limits.jobs);
  if (limits.gpu_hours) to.set_gpu_hours(*limits.gpu_hours);
  if (limits.storage_bytes) to.set_storage_bytes(*limits.storage_bytes);
  return to;
}

v1::Standing ToProto(const loop::UserStanding& standing) {
  v1::Standing to;
  to.set_user(standing.user);
  *to.mutable_limits() = ToProto(standing.limits);
  *to.mutable_use() = UseMessage(standing.use);
  for (const core::QuotaRule& rule : standing.rules) *to.add_rules() = RuleMessage(rule);
  return to;
}

absl::StatusOr<loop::SetQuota> ParseSetQuota(const v1::SetQuotaRequest& request) {
  if (auto status = auth::CheckUserName(request.user()); !status.ok()) return WithField(status, "user");
  loop::SetQuota set;
  set.user = request.user();
  if (request.has_from()) set.from = FromProto(request.from());
  if (request.has_until()) set.until = FromProto(request.until());
  TP_ASSIGN_OR_RETURN(set.limits, ParseLimits(request.limits()));
  TP_ASSIGN_OR_RETURN(set.clear, ParseClear(request, set.limits));
  if (!set.from && !set.until && set.limits.empty() && set.clear.empty()) {
    return FieldError("limits", "say what is limited, or cleared");
  }
  return set;
}

}  // namespace tp::api
