// A job's metrics, JSON objects one a line, as a table or as JSON. Pure.
#pragma once

#include <string>

#include <google/protobuf/repeated_ptr_field.h>

#include "cli/render/json.h"
#include "cli/terminal.h"

namespace tp::cli {

// Objects as they are; a line that is none as the string it is.
Json MetricsToJson(const google::protobuf::RepeatedPtrField<std::string>& lines);

// A column a name, `step` first, then in order of first use. Lines that are no objects are left out.
std::string MetricsTable(const Json& metrics, const Terminal& terminal);

}  // namespace tp::cli
