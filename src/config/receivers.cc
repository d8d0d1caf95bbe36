#include "config/receivers.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "config/loopback.h"
#include "config/scalar_types.h"

namespace tp::config {
namespace {

using decode::At;
using decode::Boolean;
using decode::Key;
using decode::ListOf;
using decode::Optional;
using decode::Problems;
using decode::Record;
using decode::RequiredKey;
using decode::Text;
using decode::Type;

constexpr size_t kMostWebhooks = 32;
constexpr size_t kMostUrlBytes = 2048;
constexpr std::string_view kHttps = "https://";
constexpr std::string_view kHttp = "http://";

Type<std::vector<core::NoticeEvent>> EventsType() {
  std::vector<std::pair<std::string, core::NoticeEvent>> choices;
  for (int i = 0; i < core::kNoticeEventCount; ++i) {
    const auto event = static_cast<core::NoticeEvent>(i);
    choices.emplace_back(core::Name(event), event);
  }
  return ListOf(decode::Choice(choices), "list of events");
}

bool IsPort(std::string_view text) {
  int port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  return error == std::errc{} && end == text.data() + text.size() && port > 0 && port <= 65535;
}

// What stands between scheme and path; nothing where it is no host with or without a port.
std::optional<std::string_view> HostOf(std::string_view authority) {
  if (!authority.empty() && authority.front() == '[') {
    const size_t close = authority.find(']');
    if (close == std::string_view::npos) return std::nullopt;
    const std::string_view rest = authority.substr(close + 1);
    if (!rest.empty() && (rest.front() != ':' || !IsPort(rest.substr(1)))) return std::nullopt;
    return authority.substr(1, close - 1);
  }
  const size_t colon = authority.find(':');
  if (colon != std::string_view::npos && !IsPort(authority.substr(colon + 1))) return std::nullopt;
  return authority.substr(0, colon);
}

std::optional<std::string_view> HostOfUrl(std::string_view url) {
  const std::string_view scheme = url.substr(0, kHttps.size()) == kHttps ? kHttps : kHttp;
  const std::string_view rest = url.substr(std::min(scheme.size(), url.size()));
  return HostOf(rest.substr(0, rest.find_first_of("/?#")));
}

std::optional<std::string> WrongUrl(const std::string& url) {
  const auto printable = [](char c) { return c > 0x20 && c < 0x7f; };
  const bool scheme = url.substr(0, kHttps.size()) == kHttps || url.substr(0, kHttp.size()) == kHttp;
  if (!scheme || url.size() > kMostUrlBytes || !std::all_of(url.begin(), url.end(), printable)) {
    return "not a url such as https://hooks.example.org/tp: https, printable ASCII, at most 2048 bytes";
  }
  const auto host = HostOfUrl(url);
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view(".-:").find(c) != std::string_view::npos;
  };
  if (host && !host->empty() && std::all_of(host->begin(), host->end(), plain)) return std::nullopt;
  return "the url's host is not one such as hooks.example.org:8443; a user or password in it is not taken";
}

Type<WebhookEntry> WebhookType() {
  return Record<WebhookEntry>(
      "a webhook",
      {RequiredKey("name", &WebhookEntry::name, decode::Name("name"), "What users write as `to`."),
       RequiredKey("url", &WebhookEntry::url, Text("https url", WrongUrl, "^https?://"),
                   "Where messages are posted. No redirect is followed. Never shown."),
       Key("allow_http", &WebhookEntry::allow_http, Boolean(),
           "Without TLS, also to other machines: everybody on the way can read the messages."),
       RequiredKey("secret_file", &WebhookEntry::secret_file, AbsolutePath(),
                   "File of mode 0600 with the secret that signs messages: `whsec_` and base64, or raw bytes, at least "
                   "16. Read at the start and at each reload."),
       Key("on", &WebhookEntry::on, EventsType(),
           "What it is told of every run, asked or not. Default: only what users ask for.")});
}

Type<core::MailHook> MailType() {
  return Record<core::MailHook>(
      "mail", {RequiredKey("command", &core::MailHook::command, ListOf(Text("word"), "list of words"),
                           "Program and arguments; no shell. It gets a whole mail on its standard input, recipient in "
                           "`To:`, and has 30 s. Suits [/usr/sbin/sendmail, -t, -i].")});
}

void CheckWebhook(const decode::Located<WebhookEntry>& webhook, Problems& problems) {
  const WebhookEntry& entry = webhook.value;
  if (entry.name == core::kMailReceiver) {
    problems.Add(webhook.at, "a webhook cannot be called mail: that is the receiver of mail");
  }
  const bool tls = entry.url.substr(0, kHttps.size()) == kHttps;
  if (!tls && !entry.allow_http && !IsLoopback(HostOfUrl(entry.url).value_or(""))) {
    problems.Add(webhook.at, fmt::format("the url of webhook {} begins with http:// and leaves this machine: use "
                                         "https://, or set allow_http",
                                         entry.name));
  }
}

}  // namespace

Type<ReceiversEntry> ReceiversType() {
  return Record<ReceiversEntry>(
      "notify",
      {Key("webhooks", &ReceiversEntry::webhooks, ListOf(At(WebhookType()), "list of webhooks"), "At most 32."),
       Key("mail", &ReceiversEntry::mail, Optional(At(MailType())), "How mail is sent. Default: not at all.")});
}

core::Receivers BuildReceivers(const ReceiversEntry& entry, Problems& problems) {
  core::Receivers receivers;
  for (const auto& webhook : entry.webhooks) {
    CheckWebhook(webhook, problems);
    const WebhookEntry& value = webhook.value;
    const bool added =
        receivers.webhooks
            .emplace(value.name, core::Webhook{.url = value.url, .secret_file = value.secret_file, .on = value.on})
            .second;
    if (!added) problems.Add(webhook.at, fmt::format("webhook {} is here twice", value.name));
  }
  if (entry.webhooks.size() > kMostWebhooks) {
    problems.Add(entry.webhooks.back().at, fmt::format("more than {} webhooks", kMostWebhooks));
  }
  if (!entry.mail) return receivers;
  receivers.mail = entry.mail->value;
  if (receivers.mail->command.empty() || receivers.mail->command.front().substr(0, 1) != "/") {
    problems.Add(entry.mail->at, "the command of mail does not begin with an absolute path");
  }
  return receivers;
}

}  // namespace tp::config
