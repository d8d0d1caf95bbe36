#include "core/notice.h"

#include <algorithm>
#include <array>

#include <fmt/ranges.h>

#include "base/near_miss.h"
#include "base/printable.h"
#include "base/status.h"
#include "core/run.h"

namespace tp::core {
namespace {

constexpr size_t kMostNotices = 16;
constexpr size_t kLongestAddress = 254;

constexpr std::array<std::string_view, kNoticeEventCount> kEvents = {"succeeded", "failed", "stopped", "paused",
                                                                     "idle"};

bool IsPlainWord(std::string_view text, std::string_view also) {
  const auto plain = [also](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           also.find(c) != std::string_view::npos;
  };
  return !text.empty() && text.front() != '-' && text.front() != '.' && std::all_of(text.begin(), text.end(), plain);
}

std::vector<std::string> NamesOf(const Receivers& receivers) {
  std::vector<std::string> names;
  names.reserve(receivers.webhooks.size());
  for (const auto& [name, webhook] : receivers.webhooks) names.push_back(name);
  return names;
}

absl::Status CheckMail(const std::string& to, const Receivers& receivers) {
  if (!IsMailAddress(to)) return InvalidArgument("notify: {} is not a mail address", Quoted(to));
  if (receivers.mail) return absl::OkStatus();
  return InvalidArgument("notify: this server sends no mail to {}: an admin has to set notify.mail in tpd.yaml", to);
}

absl::Status CheckReceiver(const std::string& to, const Receivers& receivers) {
  if (receivers.webhooks.contains(to)) return absl::OkStatus();
  if (to.find("://") != std::string::npos) {
    return InvalidArgument("notify: an address such as {} is for admins to set up: name one of their receivers",
                           Quoted(to));
  }
  const std::vector<std::string> names = NamesOf(receivers);
  if (const auto near = NearMiss(to, names)) {
    return InvalidArgument("notify: there is no receiver {}; did you mean {}?", Quoted(to), *near);
  }
  if (names.empty()) {
    return InvalidArgument("notify: there is no receiver {}: an admin has to name it in tpd.yaml", Quoted(to));
  }
  return InvalidArgument("notify: there is no receiver {}; there are {}", Quoted(to), fmt::join(names, ", "));
}

absl::Status CheckEvents(const Notice& notice) {
  if (notice.on.empty()) return InvalidArgument("notify: {} is told of nothing: write `on`", Quoted(notice.to));
  for (const NoticeEvent event : notice.on) {
    if (std::count(notice.on.begin(), notice.on.end(), event) == 1) continue;
    return InvalidArgument("notify: {} is to be told of {} twice", Quoted(notice.to), Name(event));
  }
  return absl::OkStatus();
}

}  // namespace

std::string_view Name(NoticeEvent event) { return kEvents[static_cast<size_t>(event)]; }

std::optional<NoticeEvent> NoticeEventOf(RunWord word) {
  switch (word) {
    case RunWord::kPaused:
      return NoticeEvent::kPaused;
    case RunWord::kSucceeded:
      return NoticeEvent::kSucceeded;
    case RunWord::kFailed:
    case RunWord::kPartial:
      return NoticeEvent::kFailed;
    case RunWord::kStopped:
      return NoticeEvent::kStopped;
    case RunWord::kQueued:
    case RunWord::kSubmitted:
    case RunWord::kPending:
    case RunWord::kRunning:
      return std::nullopt;
  }
  return std::nullopt;
}

bool IsMail(std::string_view to) { return to.find('@') != std::string_view::npos; }

bool IsMailAddress(std::string_view to) {
  const size_t at = to.find('@');
  return at != std::string_view::npos && to.size() <= kLongestAddress && IsPlainWord(to.substr(0, at), "._%+-") &&
         IsPlainWord(to.substr(at + 1), ".-");
}

absl::Status CheckNotices(const std::vector<Notice>& notices, const Receivers& receivers) {
  if (notices.size() > kMostNotices) {
    return InvalidArgument("notify: {} notices, at most {} are taken", notices.size(), kMostNotices);
  }
  for (const Notice& notice : notices) {
    TP_RETURN_IF_ERROR(IsMail(notice.to) ? CheckMail(notice.to, receivers) : CheckReceiver(notice.to, receivers));
    TP_RETURN_IF_ERROR(CheckEvents(notice));
  }
  return absl::OkStatus();
}

}  // namespace tp::core
