#include "tpd/give_way.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace tp::tpd {

void GiveWay() {
  constexpr int kNicest = 19;
  constexpr int kThisThread = 1;          // IOPRIO_WHO_PROCESS, of pid 0
  constexpr int kIdleClass = 3 << 13;     // IOPRIO_CLASS_IDLE
  setpriority(PRIO_PROCESS, 0, kNicest);  // on Linux a thread's
  syscall(SYS_ioprio_set, kThisThread, 0, kIdleClass);
}

}  // namespace tp::tpd
