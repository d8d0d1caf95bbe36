// Requests that say what is to be different: of a run (update), and of a copy of it (clone). The rules
// for their fields are those of a submission. Errors name the field. Pure.
#pragma once

#include "absl/status/statusor.h"
#include "core/revision.h"
#include "core/run.h"
#include "loop/commands.h"
#include "tp/v1/run.pb.h"

namespace tp::api {

absl::StatusOr<core::Revision> ParseRevision(const v1::UpdateRunRequest& request);

// The submission of a copy of `original`. FAILED_PRECONDITION: its snapshot is gone.
absl::StatusOr<loop::SubmitRun> ParseClone(const v1::CloneRunRequest& request, const core::RunWithSteps& original);

}  // namespace tp::api
