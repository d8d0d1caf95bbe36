#include "cli/project_submission.h"

#include <string>
#include <vector>

#include <fmt/format.h>

namespace tp::cli {

SubmitFlags WithProject(const ProjectFile& project, SubmitFlags flags) {
  if (flags.name.empty()) flags.name = project.name;
  if (flags.image.empty()) flags.image = project.image;
  if (flags.profiles.empty()) flags.profiles = project.profiles;
  std::vector<std::string> labels;
  for (const auto& entry : project.labels) labels.push_back(fmt::format("{}={}", entry.key, entry.value));
  flags.labels.insert(flags.labels.begin(), labels.begin(), labels.end());
  return flags;
}

void AddProjectEnv(const ProjectFile& project, v1::SubmitRunRequest& request) {
  auto& env = *request.mutable_steps(0)->mutable_env();
  for (const auto& entry : project.env) env[entry.key] = entry.value;
}

}  // namespace tp::cli
