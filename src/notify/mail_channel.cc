#include "notify/mail_channel.h"

#include <fmt/format.h>

#include "absl/time/clock.h"
#include "base/status.h"
#include "base/subprocess.h"

namespace tp::notify {
namespace {

constexpr absl::Duration kDeadline = absl::Seconds(30);

}  // namespace

TryResult MailChannel::Send(const Notification& message, int stop_fd) {
  Command command;
  command.argv = command_;
  command.env = {"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C.UTF-8"};
  command.stdin_bytes = message.body;
  command.cancel_fd = stop_fd;
  const auto result = RunCommand(command, absl::Now() + kDeadline);
  if (absl::IsCancelled(result.status())) return {.outcome = TryOutcome::kCancelled, .why = "tpd ends"};
  if (!result.ok()) return {.outcome = TryOutcome::kFailed, .why = std::string(Message(result.status()))};
  if (result->term_signal != 0) {
    return {.outcome = TryOutcome::kFailed, .why = fmt::format("the command died of signal {}", result->term_signal)};
  }
  if (result->exit_code == 0) return {.outcome = TryOutcome::kTaken};
  return {.outcome = TryOutcome::kFailed, .why = fmt::format("the command exited {}", result->exit_code)};
}

}  // namespace tp::notify
