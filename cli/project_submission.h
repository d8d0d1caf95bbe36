// What a submission takes from the project's tp.yaml; flags win over it.
#pragma once

#include "cli/project_file.h"
#include "cli/submission.h"
#include "tp/v1/run.pb.h"

namespace tp::cli {

// The flags, with what they leave open taken from the project.
SubmitFlags WithProject(const ProjectFile& project, SubmitFlags flags);

// Adds the project's environment, below every other, to the request's one step.
void AddProjectEnv(const ProjectFile& project, v1::SubmitRunRequest& request);

}  // namespace tp::cli
