// Limits as the flags of `tp admin quota set` say them. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tp/v1/quota.pb.h"

namespace tp::cli {

inline constexpr int64_t kNoLimit = -1;  // as the API writes it

// `16`; `none`: kNoLimit; `default`: nothing, what the deployment says. `what` names the flag in errors.
absl::StatusOr<std::optional<int64_t>> ParseLimit(std::string_view text, std::string_view what);

// The same in bytes: `500GiB`, `1TiB`, `1048576`.
absl::StatusOr<std::optional<int64_t>> ParseByteLimit(std::string_view text, std::string_view what);

// The flags as typed; empty: not given.
struct LimitFlags {
  std::string gpus;
  std::vector<std::string> series;  // `h200=8`
  std::string jobs;
  std::string gpu_hours;
  std::string storage;

  bool empty() const;
};

// Asks for what the flags say, and for nothing else: limits that are set, or cleared by `default`.
absl::Status ApplyLimits(const LimitFlags& flags, v1::SetQuotaRequest& request);

}  // namespace tp::cli
