// `quotas` in tpd.yaml: what every user may hold for whom an admin set nothing else. The registry carries
// it, so that it comes into force with a reload.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/quota.h"
#include "core/registry.h"
#include "decode/type.h"

namespace tp::config {

// A key that is left out: no limit.
struct QuotaEntry {
  std::optional<int64_t> gpus;
  decode::Entries<std::string, int64_t> series;
  std::optional<int64_t> jobs;
  std::optional<int64_t> gpu_hours;
  std::optional<int64_t> storage;  // bytes
};

decode::Type<QuotaEntry> QuotaType();

// A series that the registry does not have adds to `problems`.
core::QuotaLimits BuildQuotaDefaults(const QuotaEntry& entry, const core::Registry& registry,
                                     decode::Problems& problems);

}  // namespace tp::config
