#include "tpd/faults.h"

namespace tp::tpd {

absl::StatusOr<std::function<void(int64_t commit, loop::CommitPoint point)>> CommitFault() { return nullptr; }

}  // namespace tp::tpd
