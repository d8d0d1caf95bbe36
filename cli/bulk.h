// Many runs at once, by label and state: which, and whether the user means them all.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/context.h"
#include "cli/run_list.h"

namespace tp::cli {

struct BulkFlags {
  std::vector<std::string> runs;  // named ones; with any of these there is no filter
  ListFlags filter;
  bool yes = false;

  bool has_filter() const;
};

// The states in which `verb` (stop, pause, ...) does something; what completion offers, and what a filter
// without --state means.
std::vector<v1::RunState> StatesFor(std::string_view verb);

// The named runs, or the ids of those that match once the user has agreed. Empty: none match, or they do
// not agree. INVALID_ARGUMENT: neither or both were given, or there is nobody to ask.
absl::StatusOr<std::vector<std::string>> SelectRuns(Context& context, std::string_view verb, const BulkFlags& flags);

}  // namespace tp::cli
