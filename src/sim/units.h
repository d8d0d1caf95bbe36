// Microseconds, the simulator's unit of time.
#pragma once

#include <cstdint>

namespace tp::sim {

inline constexpr int64_t kMillisecond = 1'000;
inline constexpr int64_t kSecond = 1'000'000;
inline constexpr int64_t kMinute = 60 * kSecond;
inline constexpr int64_t kHour = 60 * kMinute;

}  // namespace tp::sim
