// Crashes on order, for tests. The shipped tpd links no_faults.cc, tpd-faults links faults.cc.
#pragma once

#include <cstdint>
#include <functional>

#include "absl/status/statusor.h"
#include "loop/loop_thread.h"

namespace tp::tpd {

// For ThreadHooks::commit_point; empty where there is nothing to do.
absl::StatusOr<std::function<void(int64_t commit, loop::CommitPoint point)>> CommitFault();

}  // namespace tp::tpd
