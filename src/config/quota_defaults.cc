#include "config/quota_defaults.h"

#include "config/keys_of.h"

namespace tp::config {

using decode::ByteSize;
using decode::Integer;
using decode::Key;
using decode::Optional;

decode::Type<QuotaEntry> QuotaType() {
  constexpr int64_t kMost = 1'000'000'000;
  constexpr int64_t kMostBytes = int64_t{1} << 60;
  const auto count = Integer(0, kMost);
  return decode::Record<QuotaEntry>(
      "quotas", {Key("gpus", &QuotaEntry::gpus, Optional(count), "Cards at once. Default: no limit."),
                 Key("series", &QuotaEntry::series, MapOf(decode::Name("name"), count, "mapping of series to cards"),
                     "Cards of a series at once. Default: no limit."),
                 Key("jobs", &QuotaEntry::jobs, Optional(count),
                     "Steps that are SUBMITTED, PENDING or RUNNING at once, with or without cards. Default: no limit."),
                 Key("gpu_hours", &QuotaEntry::gpu_hours, Optional(count),
                     "GPU-hours in a month of `accounting.timezone`. Default: no limit."),
                 Key("storage", &QuotaEntry::storage, Optional(ByteSize(0, kMostBytes)),
                     "What runs and snapshots take. Default: no limit.")});
}

core::QuotaLimits BuildQuotaDefaults(const QuotaEntry& entry, const core::Registry& registry,
                                     decode::Problems& problems) {
  core::QuotaLimits limits;
  limits.gpus = entry.gpus;
  limits.jobs = entry.jobs;
  limits.gpu_hours = entry.gpu_hours;
  limits.storage_bytes = entry.storage;
  for (const auto& series : entry.series) {
    limits.series_gpus[series.key] = series.value;
    if (registry.series.contains(series.key)) continue;
    decode::AddUnknown(series.at, "series", series.key, "", KeysOf(registry.series), problems);
  }
  return limits;
}

}  // namespace tp::config
