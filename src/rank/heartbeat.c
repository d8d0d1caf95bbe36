#include "heartbeat.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "claim.h"
#include "clock.h"
#include "helper.h"
#include "io.h"
#include "record.h"

// Overwritten in place and of constant size: works on a full disk, and a reader never sees a file
// that is shorter than a beat. Opened anew each time, because close() is what sends it to the server
// of a network filesystem.
static void beat(int dir_fd, const char* name, const struct run_options* options, const struct identity* identity,
                 uint64_t count) {
  struct stamp now = clock_now();
  struct record record;
  record_begin(&record);
  claim_add_identity(&record, options, identity);
  record_add(&record, "count", "%020llu", (unsigned long long)count);
  record_add(&record, "beat_boot_us", "%020lld", (long long)now.boot_us);
  record_add(&record, "beat_unix_us", "%020lld", (long long)now.unix_us);
  record_end(&record);
  int fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0660);
  if (fd < 0) return;
  io_write_all(fd, record.text, record.length);
  close(fd);
}

static void run_helper(uint64_t* beat_count, int dir_fd, const struct run_options* options,
                       const struct identity* identity, int fence_fd) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != identity->pid) return;
  char name[64];
  snprintf(name, sizeof name, "%s-%s.heartbeat", options->pool, options->rank);
  for (;;) {
    beat(dir_fd, name, options, identity, ++*beat_count);
    if (fence_read(dir_fd) == FENCE_CLOSED) {
      (void)!write(fence_fd, "c", 1);
      return;
    }
    clock_sleep_ms(options->heartbeat_ms);
  }
}

bool heartbeat_start(struct heartbeat* heartbeat, uint64_t* beat_count, int dir_fd, const struct run_options* options,
                     const struct identity* identity) {
  int fence[2];
  *heartbeat = (struct heartbeat){.fence_fd = -1};
  if (pipe2(fence, O_CLOEXEC) != 0) return false;
  int keep[] = {dir_fd, fence[1]};
  pid_t pid = helper_fork(keep, sizeof keep / sizeof keep[0]);
  if (pid == 0) {
    run_helper(beat_count, dir_fd, options, identity, fence[1]);
    _exit(0);
  }
  int error = errno;
  close(fence[1]);
  if (pid < 0) {
    close(fence[0]);
    errno = error;
    return false;
  }
  *heartbeat = (struct heartbeat){.pid = pid, .fence_fd = fence[0]};
  return true;
}

bool heartbeat_saw_closed_fence(const struct heartbeat* heartbeat) {
  char mark;
  return read(heartbeat->fence_fd, &mark, 1) == 1;
}

void heartbeat_stop(struct heartbeat* heartbeat) {
  if (heartbeat->pid > 0) kill(heartbeat->pid, SIGKILL);
  heartbeat->pid = 0;
  io_close(&heartbeat->fence_fd);
}
