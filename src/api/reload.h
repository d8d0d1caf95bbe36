// SystemService.ReloadConfiguration.
#pragma once

#include "api/call.h"
#include "tp/v1/system.pb.h"

namespace tp::api {

// On a worker thread that may read files.
void ReloadConfiguration(Context& context, const Call& call, const v1::ReloadConfigurationRequest& request,
                         v1::ReloadConfigurationResponse* response, const Done& done);

}  // namespace tp::api
