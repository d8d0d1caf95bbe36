// The simulator's only source of chance.
#pragma once

#include <cstdint>

#include "base/random.h"

namespace tp::sim {

// How long something takes, drawn so that every order of magnitude is as likely.
struct Span {
  int64_t low_us = 0;
  int64_t high_us = 0;
};

class Rng : public Random {
 public:
  using Random::Random;

  int64_t Draw(const Span& span) { return AnyMagnitude(span.low_us, span.high_us); }
};

}  // namespace tp::sim
