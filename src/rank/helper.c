#include "helper.h"

#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "io.h"

pid_t helper_fork(const int* keep, size_t keep_count) {
  pid_t pid = (pid_t)syscall(SYS_clone, (long)HELPER_END_SIGNAL, 0L, 0L, 0L, 0L);
  if (pid == 0) {
    io_null_stdio();
    io_close_all_except(keep, keep_count);
  }
  return pid;
}

pid_t helper_reap(int* wait_status) {
  pid_t pid = waitpid(-1, wait_status, WNOHANG | (int)__WCLONE);
  return pid > 0 ? pid : 0;
}
