// What a dry run tells of each step: executor, environment with origins, overrides, places.
#pragma once

#include <google/protobuf/repeated_field.h>

#include "absl/status/status.h"
#include "core/registry.h"
#include "loop/commands.h"
#include "store/store.h"
#include "tp/v1/run.pb.h"

namespace tp::api {

// `run` is as the loop would have it.
absl::Status AddPlan(store::Reader& reader, const core::Registry& registry, const loop::LiveRun& run,
                     google::protobuf::RepeatedPtrField<v1::StepPlan>* plans);

}  // namespace tp::api
