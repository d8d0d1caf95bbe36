// One line on a terminal's stderr that tells how far something is, and vanishes.
#pragma once

#include <cstdint>
#include <string_view>

#include "absl/time/time.h"

namespace tp::cli {

class Progress {
 public:
  // Silent unless `wanted` and stderr is a terminal that can redraw a line.
  explicit Progress(bool wanted);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Draws ten times a second at most.
  void Update(std::string_view what, int64_t done_bytes, int64_t total_bytes);

 private:
  bool enabled_;
  bool drawn_ = false;
  absl::Time next_draw_;
};

}  // namespace tp::cli
