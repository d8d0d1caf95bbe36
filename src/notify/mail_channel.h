// Mail by an admin's command: the mail is its standard input, the recipient stands in the mail and in no argument.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "notify/channel.h"

namespace tp::notify {

class MailChannel final : public Channel {
 public:
  explicit MailChannel(std::vector<std::string> command) : command_(std::move(command)) {}

  // At most 30 s; then the command is killed with its process group.
  TryResult Send(const Notification& message, int stop_fd) override;

 private:
  const std::vector<std::string> command_;
};

}  // namespace tp::notify
