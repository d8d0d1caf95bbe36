// A consistent copy of a database that may be in use. Never copy the file itself: it lacks what is still
// in the write-ahead log.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace tp::store {

// Blocking; readers and the writer go on meanwhile. `to` holds either what it held before or the whole
// copy, which is on storage when this returns OK.
absl::Status BackUp(const std::string& from, const std::string& to);

}  // namespace tp::store
