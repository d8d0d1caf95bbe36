#include "notify/notification.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/utf8.h"
#include "core/run.h"

namespace tp::notify {
namespace {

constexpr int kSchemaVersion = 1;
constexpr size_t kMostReasonBytes = 1000;

// Whatever an engine said: one line of text that neither a header nor a terminal can be steered with.
std::string PlainLine(const std::string& text) {
  std::string line;
  for (size_t at = 0; at < text.size() && line.size() < kMostReasonBytes;) {
    const size_t length = Utf8SequenceLength(text, at);
    const auto byte = static_cast<unsigned char>(text[at]);
    const bool c1_control = length == 2 && byte == 0xC2 && static_cast<unsigned char>(text[at + 1]) < 0xA0;
    const bool plain = length > 0 && byte >= 0x20 && byte != 0x7F && !c1_control;
    line += plain ? text.substr(at, length) : " ";
    at += std::max<size_t>(length, 1);
  }
  return line;
}

std::string Timestamp(absl::Time time) { return absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", time, absl::UTCTimeZone()); }

std::string WebhookBody(const store::WordChange& change, core::NoticeEvent event, const Sender& sender) {
  const store::WordChangeRow& row = change.row;
  const nlohmann::json data = {{"schema_version", kSchemaVersion},
                               {"deployment", sender.deployment},
                               {"run", change.run.id()},
                               {"name", change.run.slug},
                               {"owner", change.run.owner},
                               {"project", change.run.project},
                               {"step", row.step},
                               {"old_state", core::Name(row.from)},
                               {"new_state", core::Name(row.to)},
                               {"reason", PlainLine(row.reason)},
                               {"retry_count", row.retry_count}};
  const nlohmann::json body = {
      {"type", fmt::format("run.{}", core::Name(event))}, {"timestamp", Timestamp(row.at)}, {"data", data}};
  return body.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

bool IsIdle(const store::WordChangeRow& row) { return row.to == core::RunWord::kRunning; }

std::optional<core::NoticeEvent> EventOf(const store::WordChangeRow& row) {
  return IsIdle(row) ? core::NoticeEvent::kIdle : core::NoticeEventOf(row.to);
}

std::string MailText(const store::WordChange& change, const Sender& sender, const std::string& id,
                     const std::string& to) {
  const store::WordChangeRow& row = change.row;
  std::string mail = fmt::format("To: {}\r\nSubject: [{}] {} {}\r\n", to, sender.deployment, change.run.id(),
                                 IsIdle(row) ? "is idle" : core::Name(row.to));
  mail += fmt::format("Date: {}\r\nMessage-ID: <{}@tpd>\r\n",
                      absl::FormatTime("%a, %d %b %Y %H:%M:%S +0000", row.at, absl::UTCTimeZone()), id);
  mail +=
      "Auto-Submitted: auto-generated\r\nMIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\n"
      "Content-Transfer-Encoding: 8bit\r\n\r\n";
  mail += fmt::format("{}: {} -> {}\r\n", change.run.id(), core::Name(row.from), core::Name(row.to));
  if (!row.reason.empty()) mail += fmt::format("reason   {}\r\n", PlainLine(row.reason));
  mail += fmt::format("step     {}\r\nowner    {}\r\nproject  {}\r\nretries  {}\r\ntime     {}\r\n", row.step,
                      PlainLine(change.run.owner), change.run.project, row.retry_count, Timestamp(row.at));
  return mail;
}

bool Holds(const std::vector<core::NoticeEvent>& events, core::NoticeEvent event) {
  return std::find(events.begin(), events.end(), event) != events.end();
}

// Receivers with recipients.
std::set<std::pair<std::string, std::string>> WhoIsTold(const core::Run& run, core::NoticeEvent event,
                                                        const Feeds& feeds) {
  std::set<std::pair<std::string, std::string>> told;
  for (const auto& [name, events] : feeds) {
    if (Holds(events, event)) told.emplace(name, "");
  }
  for (const core::Notice& notice : run.notify) {
    if (!Holds(notice.on, event)) continue;
    if (core::IsMail(notice.to)) {
      told.emplace(core::kMailReceiver, notice.to);
    } else {
      told.emplace(notice.to, "");
    }
  }
  return told;
}

}  // namespace

std::vector<Notification> NotificationsOf(const store::WordChange& change, const Feeds& feeds, const Sender& sender) {
  std::vector<Notification> messages;
  const auto event = EventOf(change.row);
  if (!event) return messages;
  for (const auto& [receiver, recipient] : WhoIsTold(change.run, *event, feeds)) {
    Notification& message = messages.emplace_back();
    message.id = fmt::format("msg_{}_{}", sender.instance, change.row.revision);
    message.receiver = receiver;
    message.recipient = recipient;
    message.run = change.row.run;
    message.body =
        recipient.empty() ? WebhookBody(change, *event, sender) : MailText(change, sender, message.id, recipient);
  }
  return messages;
}

}  // namespace tp::notify
