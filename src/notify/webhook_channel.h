// Signed HTTP posts. Follows no redirect, uses no proxy, verifies TLS; connects within 5 s and is done within 10 s.
#pragma once

#include <memory>
#include <string>

#include "notify/channel.h"

namespace tp::notify {

class WebhookChannel final : public Channel {
 public:
  WebhookChannel(std::string url, std::string key);
  ~WebhookChannel() override;

  TryResult Send(const Notification& message, int stop_fd) override;

 private:
  struct Handles;  // libcurl's: connections are kept from one message to the next

  const std::string url_;
  const std::string key_;
  const std::unique_ptr<Handles> handles_;
};

}  // namespace tp::notify
