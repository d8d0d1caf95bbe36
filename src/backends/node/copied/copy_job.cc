#include "backends/node/copied/copy_job.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include <fmt/format.h>

#include "absl/time/clock.h"
#include "base/file.h"
#include "base/human_bytes.h"

namespace tp::node {
namespace {

// How late a machine that was given up is left.
constexpr absl::Duration kWaitTurn = absl::Milliseconds(250);

}  // namespace

absl::StatusOr<std::shared_ptr<CopyJob>> CopyJob::Make() {
  UniqueFd cancel(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!cancel.valid()) return ErrnoStatus(errno, "make", "an eventfd");
  return std::shared_ptr<CopyJob>(new CopyJob(std::move(cancel)));
}

bool CopyJob::under_way() const {
  const std::lock_guard lock(mutex_);
  return under_way_;
}

std::string CopyJob::words() const {
  const std::lock_guard lock(mutex_);
  if (!under_way_) return ended_with_;
  std::string words;
  for (const auto& [node, told] : told_) {
    if (!told.empty()) words += (words.empty() ? "" : "; ") + told;
  }
  return words;
}

void CopyJob::CallOff() {
  const std::lock_guard lock(mutex_);
  called_off_ = true;
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(cancel_.get(), &one, sizeof one);
}

void CopyJob::GiveUp(const std::string& node) {
  const std::lock_guard lock(mutex_);
  given_up_.insert(node);
}

bool CopyJob::called_off() const {
  const std::lock_guard lock(mutex_);
  return called_off_;
}

bool CopyJob::given_up(const std::string& node) const {
  const std::lock_guard lock(mutex_);
  return given_up_.contains(node);
}

void CopyJob::Tell(const std::string& node, const std::string& words) {
  const std::lock_guard lock(mutex_);
  told_[node] = words;
}

bool CopyJob::Wait(const std::string& node, absl::Duration length) const {
  const absl::Time until = absl::Now() + length;
  for (;;) {
    if (called_off() || given_up(node)) return false;
    const absl::Duration left = until - absl::Now();
    if (left <= absl::ZeroDuration()) return true;
    pollfd wait{cancel_.get(), POLLIN, 0};
    poll(&wait, 1, static_cast<int>(absl::ToInt64Milliseconds(std::min(left, kWaitTurn))) + 1);
  }
}

void CopyJob::End(const std::string& words) {
  const std::lock_guard lock(mutex_);
  ended_with_ = words;
  under_way_ = false;
}

std::string ProgressWords(int64_t done, int64_t total) {
  if (total <= 0) return HumanBytes(done);
  return fmt::format("{} of {}", HumanBytes(std::min(done, total)), HumanBytes(total));
}

}  // namespace tp::node
