// The border of one job: what throws behind it is a fault of that job's values and holds that job alone
// (DESIGN 12).
#pragma once

#include <exception>

#include "base/status.h"

namespace tp::loop {

// `call` returns a StatusOr; INTERNAL says what it threw.
template <typename Call>
auto Guarded(const Call& call) -> decltype(call()) {
  try {
    return call();
  } catch (const std::exception& error) {
    return Internal("a fault in tpd: {}; tell its admin", error.what());
  }
}

}  // namespace tp::loop
