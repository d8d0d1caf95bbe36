// A machine whose real-time clock is three hours ahead, for a tp-rank that is linked with --wrap=clock_gettime.
#include <time.h>

int __real_clock_gettime(clockid_t id, struct timespec* now);
int __wrap_clock_gettime(clockid_t id, struct timespec* now);

int __wrap_clock_gettime(clockid_t id, struct timespec* now) {
  const int result = __real_clock_gettime(id, now);
  if (id == CLOCK_REALTIME) now->tv_sec += 3 * 60 * 60;
  return result;
}
