// The receivers with all that it takes to reach them.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "core/notice.h"
#include "notify/channel.h"

namespace tp::notify {

struct WebhookEndpoint {
  std::string url;
  std::string key;  // secret
  bool operator==(const WebhookEndpoint&) const = default;
};

struct Endpoint {
  std::variant<WebhookEndpoint, core::MailHook> way;
  std::vector<core::NoticeEvent> on = {};  // of every run
  int most_at_once = 1;
  bool operator==(const Endpoint&) const = default;
};

using Endpoints = std::map<std::string, Endpoint>;  // by name

// Reads the secret files; blocking. FAILED_PRECONDITION names the webhook whose secret cannot be used.
absl::StatusOr<Endpoints> LoadEndpoints(const core::Receivers& receivers);

std::unique_ptr<Channel> MakeChannel(const Endpoint& endpoint);

}  // namespace tp::notify
