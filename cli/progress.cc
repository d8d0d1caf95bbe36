#include "cli/progress.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include <fmt/format.h>
#include <unistd.h>

#include "absl/time/clock.h"
#include "base/human_bytes.h"

namespace tp::cli {
namespace {

constexpr absl::Duration kDrawInterval = absl::Milliseconds(100);
constexpr std::string_view kClearLine = "\r\x1b[K";
constexpr int64_t kBarWidth = 24;

bool CanRedraw() {
  const char* term = std::getenv("TERM");
  return ::isatty(STDERR_FILENO) != 0 && term != nullptr && std::string_view(term) != "dumb";
}

std::string Bar(int64_t done, int64_t total) {
  const int64_t filled = total > 0 ? std::clamp<int64_t>(done * kBarWidth / total, 0, kBarWidth) : kBarWidth;
  return std::string(static_cast<size_t>(filled), '#') + std::string(static_cast<size_t>(kBarWidth - filled), '-');
}

}  // namespace

// Nothing is drawn of what is over at once.
Progress::Progress(bool wanted) : enabled_(wanted && CanRedraw()), next_draw_(absl::Now() + kDrawInterval) {}

Progress::~Progress() {
  if (drawn_) fmt::print(stderr, "{}", kClearLine);
}

void Progress::Update(std::string_view what, int64_t done_bytes, int64_t total_bytes) {
  if (!enabled_) return;
  const absl::Time now = absl::Now();
  if (now < next_draw_) return;
  next_draw_ = now + kDrawInterval;
  drawn_ = true;
  fmt::print(stderr, "{}{} [{}] {} of {}", kClearLine, what, Bar(done_bytes, total_bytes), HumanBytes(done_bytes),
             HumanBytes(total_bytes));
  std::fflush(stderr);
}

}  // namespace tp::cli
