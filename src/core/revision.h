// `tp update`: what may be changed of a run after its submission, and by whom (DESIGN 3, 6). None of it
// changes a state. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/registry.h"
#include "core/run.h"

namespace tp::core {

// What is absent stays as it is.
struct Revision {
  std::optional<std::string> name = std::nullopt;  // becomes the slug
  std::optional<std::map<std::string, std::string>> labels = std::nullopt;
  std::optional<int32_t> priority = std::nullopt;
  std::optional<bool> hold = std::nullopt;
  // Of one step, or of the only one where `step` is absent.
  std::optional<int32_t> step = std::nullopt;
  std::optional<std::vector<std::string>> profiles = std::nullopt;
  std::optional<std::optional<absl::Duration>> time_limit = std::nullopt;  // nothing inside: none
};

struct Reviser {
  bool is_owner = true;
  bool is_operator = false;  // or admin
};

// 0 to 100; owners lower it, and raise it again up to the default; operators do as they like.
absl::Status CheckPriority(int32_t wanted, int32_t present, const Reviser& by);

// Changes `run` and says each change in a sentence; none where all was so already. On an error `run` is
// as it was. FAILED_PRECONDITION: not in this state.
absl::StatusOr<std::vector<std::string>> Revise(RunWithSteps& run, const Revision& revision, const Reviser& by,
                                                const Registry& registry);

// Another word whenever something that Revise or `tp rm` changes is different.
std::string VersionOf(const RunWithSteps& run);

// FAILED_PRECONDITION: it is only a tombstone.
absl::Status RemovedError(const Run& run);

}  // namespace tp::core
