#include "backends/node/copied/copy_site.h"

#include <algorithm>

#include <fmt/format.h>

#include "absl/time/clock.h"
#include "base/status.h"

namespace tp::node {
namespace {

// Sessions of one connection, of which sshd allows ten by default.
constexpr int kCopiesOfHost = 4;
constexpr absl::Duration kSlotTurn = absl::Milliseconds(50);
constexpr absl::Duration kLongestCopy = absl::Hours(48);
constexpr absl::Duration kLongestRest = absl::Seconds(30);

}  // namespace

bool CopySlots::Take(const std::string& node, const CopyJob& job) {
  do {
    const std::lock_guard lock(mutex_);
    if (taken_[node] < kCopiesOfHost) {
      ++taken_[node];
      return true;
    }
  } while (job.Wait(node, kSlotTurn));
  return false;
}

void CopySlots::GiveBack(const std::string& node) {
  const std::lock_guard lock(mutex_);
  --taken_[node];
}

std::string CopiesOf(const std::string& attempt_dir) { return attempt_dir + "/.copied"; }
std::string BaseOf(const std::string& attempt_dir) { return CopiesOf(attempt_dir) + "/base"; }
std::string CameFrom(const std::string& attempt_dir, int pool, int rank) {
  return fmt::format("{}/from-{}-{}", CopiesOf(attempt_dir), pool, rank);
}

absl::Status CopyInTurn(const CopySite& site, const CopyOrder& order, CopyJob& job,
                        const std::function<void(int64_t bytes)>& progress) {
  if (!site.slots.Take(order.host.node, job)) return Error(absl::StatusCode::kCancelled, "the copy was called off");
  const absl::Status copied = site.copier.Copy(order, progress, job.cancel_fd(), absl::Now() + kLongestCopy);
  site.slots.GiveBack(order.host.node);
  return copied;
}

absl::Duration TryAgainAfter(int failures) {
  return std::min(absl::Seconds(1) * (1 << std::min(failures, 5)), kLongestRest);
}

}  // namespace tp::node
