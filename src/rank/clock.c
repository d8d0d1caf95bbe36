#include "clock.h"

#include <errno.h>
#include <time.h>

static int64_t read_us(clockid_t id) {
  struct timespec now;
  clock_gettime(id, &now);
  return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

int64_t clock_boot_us(void) { return read_us(CLOCK_BOOTTIME); }

struct stamp clock_now(void) {
  return (struct stamp){.boot_us = clock_boot_us(), .unix_us = read_us(CLOCK_REALTIME)};
}

void clock_sleep_ms(int64_t duration_ms) {
  struct timespec left = {.tv_sec = duration_ms / 1000, .tv_nsec = duration_ms % 1000 * 1000000};
  while (nanosleep(&left, &left) < 0 && errno == EINTR) {
  }
}
