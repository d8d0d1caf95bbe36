// What a submission takes from the project's tp.yaml; flags win over it.
#pragma once

#include "absl/status/status.h"
#include "cli/project_file.h"
#include "cli/submission.h"
#include "tp/v1/run.pb.h"

namespace tp::cli {

// The flags, with what they leave open taken from the project.
SubmitFlags WithProject(const ProjectFile& project, SubmitFlags flags);

// Adds the project's environment, below every other, to the request's first step.
void AddProjectEnv(const ProjectFile& project, v1::SubmitRunRequest& request);

// Who is to be told, as the project says it; the server knows who can be.
void AddNotices(const ProjectFile& project, v1::SubmitRunRequest& request);

// The steps of --then, behind the request's first: from the project, else as a recipe of the deployment's.
// --env goes to all of them, --image to those that have none of their own. INVALID_ARGUMENT: a step comes
// after one that is no part of this submission.
absl::Status AddThenSteps(const ProjectFile& project, const SubmitFlags& flags, v1::SubmitRunRequest& request);

}  // namespace tp::cli
