#include "base/fault_point.h"

namespace tp {

void ReachFaultPoint(FaultPoint) noexcept {}

}  // namespace tp
