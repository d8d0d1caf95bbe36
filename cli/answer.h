// One answer in every output format.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/context.h"
#include "cli/render/json.h"
#include "tp/v1/system.pb.h"

namespace tp::cli {

struct Answer {
  // For -o table and, with `wide`, -o wide.
  std::function<std::string(bool wide)> table;
  // For -o json and yaml: fills the document.
  std::function<void(Json& document)> fill;
  // For -o name; absent: what is shown has no names.
  std::optional<std::vector<std::string>> names;
  // For -o csv; absent: not offered.
  std::function<std::string()> csv;
};

// INVALID_ARGUMENT for a format that the answer does not have.
absl::StatusOr<std::string> Render(OutputFormat format, const Answer& answer);

// The same to stdout.
absl::StatusOr<ExitCode> Show(const Context& context, const Answer& answer);

// Of a change that is answered with a sentence: that is talk, the name of what was changed the answer.
absl::StatusOr<ExitCode> ShowNote(const Context& context, const std::string& name, const std::string& note);

// Of a dry run of such a change.
absl::StatusOr<ExitCode> ShowForecast(const Context& context, const std::string& note,
                                      const v1::QueueForecast& forecast);

}  // namespace tp::cli
