// Names of runs, steps and attempts (DESIGN 2 and 5.3). Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace tp::core {

// `<slug>-<n>`; n never repeats in the deployment.
std::string RunName(std::string_view slug, int64_t run);

// [a-z0-9-], at most 30 characters, no '-' at either end, "run" where nothing is left.
std::string MakeSlug(std::string_view text);

struct StepRef {
  int64_t run = 0;
  int32_t step = 0;
  auto operator<=>(const StepRef&) const = default;
};

struct AttemptRef {
  StepRef step;
  int32_t attempt = 0;
  auto operator<=>(const AttemptRef&) const = default;
};

// The deployment's name ([a-z][a-z0-9]{0,9}) and the epoch of its database (DESIGN 5.10).
struct Deployment {
  std::string name;
  int64_t epoch = 1;
  bool operator==(const Deployment&) const = default;
};

absl::Status CheckDeploymentName(std::string_view name);

// `tp-<deployment>-e<epoch>-<n>-s<step>-a<attempt>`
std::string AttemptKey(const Deployment& deployment, const AttemptRef& attempt);

struct ParsedKey {
  Deployment deployment;
  AttemptRef attempt;
  bool operator==(const ParsedKey&) const = default;
};
// Exactly what AttemptKey writes, and nothing else.
std::optional<ParsedKey> ParseAttemptKey(std::string_view key);

// What a user types for a run: `42`, `train-42` (both parts must match) or `@last`.
struct RunSelector {
  bool last = false;
  int64_t run = 0;
  std::optional<std::string> slug;
  bool operator==(const RunSelector&) const = default;
};
absl::StatusOr<RunSelector> ParseRunSelector(std::string_view text);

}  // namespace tp::core
