#include "api/run_directories.h"

#include <string>
#include <string_view>

#include "api/job_files.h"
#include "base/status.h"

namespace tp::api {
namespace {

absl::StatusOr<Directory> OpenBelowRoot(const core::LaunchLayout& layout, std::string_view path) {
  if (path.substr(0, layout.storage_root.size()) != layout.storage_root) {
    return Internal("{} is not below storage.root {}", path, layout.storage_root);
  }
  path.remove_prefix(layout.storage_root.size());
  while (!path.empty() && path.front() == '/') path.remove_prefix(1);
  return OpenDirectoryBeneath(layout.storage_root, path);
}

std::string_view ParentOf(std::string_view path) { return path.substr(0, path.rfind('/')); }

}  // namespace

absl::StatusOr<Directory> OpenRunDirectory(const core::LaunchLayout& layout, const core::Run& run) {
  return OpenBelowRoot(layout, core::RunDirectoryOf(layout, run));
}

absl::StatusOr<Directory> OpenAttemptDirectory(const core::LaunchLayout& layout, const core::Run& run,
                                               const core::Step& step, int32_t attempt) {
  return OpenBelowRoot(layout, core::PathsOf(layout, run, step, attempt).attempt_dir);
}

absl::StatusOr<Directory> OpenResultsDirectory(const core::LaunchLayout& layout, const core::RunWithSteps& run) {
  const AttemptPaths paths = core::PathsOf(layout, run.run, run.steps.front(), 1);
  return OpenBelowRoot(layout, ParentOf(paths.results_dir));
}

}  // namespace tp::api
