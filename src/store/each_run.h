// Every run that a filter lets through, newest first, read page by page.
#pragma once

#include <functional>

#include "absl/status/status.h"
#include "core/run.h"
#include "store/store.h"

namespace tp::store {

// Stops at the first error of the reader or of `visit`, and returns it. The pages are read one after the
// other: a commit in between may show in the later ones.
absl::Status EachRun(Reader& reader, const RunFilter& filter,
                     const std::function<absl::Status(const core::RunWithSteps&)>& visit);

}  // namespace tp::store
