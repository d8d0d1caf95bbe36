#include "notify/endpoints.h"

#include <fmt/format.h>

#include "auth/secret_file.h"
#include "base/overloaded.h"
#include "base/status.h"
#include "notify/mail_channel.h"
#include "notify/signature.h"
#include "notify/webhook_channel.h"

namespace tp::notify {
namespace {

constexpr int kMailHooksAtOnce = 4;

absl::StatusOr<std::string> ReadKey(const std::string& name, const std::string& path) {
  const auto content = auth::ReadSecretFile(path);
  if (!content.ok()) return FailedPrecondition("webhook {}: {}", name, Message(content.status()));
  auto key = KeyOfSecret(*content);
  if (!key.ok()) return FailedPrecondition("webhook {}, {}: {}", name, path, Message(key.status()));
  return key;
}

}  // namespace

absl::StatusOr<Endpoints> LoadEndpoints(const core::Receivers& receivers) {
  Endpoints endpoints;
  for (const auto& [name, webhook] : receivers.webhooks) {
    TP_ASSIGN_OR_RETURN(std::string key, ReadKey(name, webhook.secret_file));
    endpoints[name] = {.way = WebhookEndpoint{.url = webhook.url, .key = std::move(key)}, .on = webhook.on};
  }
  if (receivers.mail) {
    endpoints[std::string(core::kMailReceiver)] = {.way = *receivers.mail, .on = {}, .most_at_once = kMailHooksAtOnce};
  }
  return endpoints;
}

std::unique_ptr<Channel> MakeChannel(const Endpoint& endpoint) {
  return std::visit(Overloaded{[](const WebhookEndpoint& webhook) -> std::unique_ptr<Channel> {
                                 return std::make_unique<WebhookChannel>(webhook.url, webhook.key);
                               },
                               [](const core::MailHook& mail) -> std::unique_ptr<Channel> {
                                 return std::make_unique<MailChannel>(mail.command);
                               }},
                    endpoint.way);
}

}  // namespace tp::notify
