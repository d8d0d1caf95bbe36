// Quota between core values and the API. Pure.
#pragma once

#include "absl/status/statusor.h"
#include "core/quota.h"
#include "loop/commands.h"
#include "tp/v1/quota.pb.h"

namespace tp::api {

v1::QuotaLimits ToProto(const core::QuotaLimits& limits);
v1::Standing ToProto(const loop::UserStanding& standing);

// INVALID_ARGUMENT names the field. Whether the series exist is the loop's to say.
absl::StatusOr<loop::SetQuota> ParseSetQuota(const v1::SetQuotaRequest& request);

}  // namespace tp::api
