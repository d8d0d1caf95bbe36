// What another registry would mean for the steps that wait.
#pragma once

#include "absl/status/status.h"
#include "api/configuration_port.h"
#include "store/store.h"
#include "tp/v1/system.pb.h"

namespace tp::api {

// Reads the waiting runs page by page, so that the loop does nothing for it, and adds to `response` what
// becomes of their shapes. What does not change is left out.
absl::Status ForecastQueue(store::Reader& reader, const ReloadPlan& plan, v1::ReloadConfigurationResponse* response);

}  // namespace tp::api
