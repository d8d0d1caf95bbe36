// The two clocks of the launch contract, in microseconds.
#pragma once

#include <stdint.h>

struct stamp {
  int64_t boot_us;  // CLOCK_BOOTTIME: durations, within one boot id
  int64_t unix_us;  // CLOCK_REALTIME
};

struct stamp clock_now(void);
int64_t clock_boot_us(void);
void clock_sleep_ms(int64_t duration_ms);
