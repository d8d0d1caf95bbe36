// Scalars that both files use.
#pragma once

#include <string>

#include "absl/time/time.h"
#include "decode/type.h"

namespace tp::config {

// Without `.`, `..` and not `/` itself.
decode::Type<std::string> AbsolutePath();

// A name of the IANA database, read from the machine's tzdata.
decode::Type<absl::TimeZone> TimeZone();

}  // namespace tp::config
