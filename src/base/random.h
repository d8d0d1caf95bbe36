// Chance under a seed: xoshiro256** over integers, so that a seed means the same on every machine and with
// every standard library. Not for secrets.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace tp {

class Random {
 public:
  explicit Random(uint64_t seed) {
    for (uint64_t& word : state_) word = SplitMix(seed);
  }

  uint64_t Next() {
    const uint64_t result = Rotate(state_[1] * 5, 7) * 9;
    const uint64_t shifted = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= shifted;
    state_[3] = Rotate(state_[3], 45);
    return result;
  }

  // Both ends included.
  int64_t Between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(Next() % (static_cast<uint64_t>(high - low) + 1));
  }

  bool Chance(int permille) { return Between(0, 999) < permille; }

  // Both ends included; every order of magnitude above `low` is as likely.
  int64_t AnyMagnitude(int64_t low, int64_t high) {
    const int64_t width = high - low;
    if (width <= 0) return low;
    int bits = 0;
    while ((width >> bits) > 0) ++bits;
    const int64_t limit = int64_t{1} << Between(0, bits);
    return low + Between(0, limit < width ? limit : width);
  }

  template <typename T>
  const T& Pick(const std::vector<T>& from) {
    return from[static_cast<size_t>(Between(0, static_cast<int64_t>(from.size()) - 1))];
  }

 private:
  static uint64_t Rotate(uint64_t value, int by) { return (value << by) | (value >> (64 - by)); }
  static uint64_t SplitMix(uint64_t& seed) {
    uint64_t z = (seed += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }

  std::array<uint64_t, 4> state_{};
};

}  // namespace tp
