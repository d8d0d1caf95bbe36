// A job's metrics, JSON objects one a line, as a table, as plots, as CSV or as JSON. Pure.
#pragma once

#include <string>
#include <vector>

#include <google/protobuf/repeated_ptr_field.h>

#include "absl/status/statusor.h"
#include "cli/render/json.h"
#include "cli/terminal.h"

namespace tp::cli {

// Objects as they are; a line that is none as the string it is.
Json MetricsToJson(const google::protobuf::RepeatedPtrField<std::string>& lines);

// Only these members, and `step`; all where `names` is empty. NOT_FOUND names what there is.
absl::StatusOr<Json> SelectMetrics(const Json& metrics, const std::vector<std::string>& names);

// A column a name, `step` first, then in order of first use. Lines that are no objects are left out.
std::string MetricsTable(const Json& metrics, const Terminal& terminal);
std::string MetricsCsv(const Json& metrics);

// A plot a name, of those that are numbers, over `step`, or over the line where there is none.
std::string MetricsPlots(const Json& metrics, const Terminal& terminal);

}  // namespace tp::cli
