// Who is told of what becomes of a run: what its owner asks for (`notify` of tp.yaml), and the receivers that
// admins offer (`notify` of tpd.yaml). Users name a receiver and never an address that tpd would connect to. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace tp::core {

enum class RunWord : uint8_t;

// What somebody can be told of; the words of `on`. Idle: it runs, and its cards compute nothing.
enum class NoticeEvent : uint8_t { kSucceeded, kFailed, kStopped, kPaused, kIdle };
inline constexpr int kNoticeEventCount = 5;
std::string_view Name(NoticeEvent event);

// What a run has come to when its word is this one; PARTIAL is a failure. Nothing for words that nobody is told of.
std::optional<NoticeEvent> NoticeEventOf(RunWord word);

struct Notice {
  std::string to;  // name of a webhook, or a mail address
  std::vector<NoticeEvent> on;
  bool operator==(const Notice&) const = default;
};

struct Webhook {
  std::string url;                   // may be a secret itself: never shown
  std::string secret_file;           // absolute
  std::vector<NoticeEvent> on = {};  // of every run, whether its owner asked or not
  bool operator==(const Webhook&) const = default;
};

// A program that takes a whole mail on its standard input, recipient included.
struct MailHook {
  std::vector<std::string> command;  // the first an absolute path
  bool operator==(const MailHook&) const = default;
};

// The receiver of all mail; no webhook has this name.
inline constexpr std::string_view kMailReceiver = "mail";

struct Receivers {
  std::map<std::string, Webhook> webhooks;  // by name
  std::optional<MailHook> mail;
  bool operator==(const Receivers&) const = default;
};

// Whether `to` means a mail address, be it a good one or not.
bool IsMail(std::string_view to);

// An address that is safe in a header and as a word of a command: ASCII, one '@', no '-' or '.' in front, nothing
// that would need quotes.
bool IsMailAddress(std::string_view to);

// INVALID_ARGUMENT names the notice that nobody could send, and what there is instead.
absl::Status CheckNotices(const std::vector<Notice>& notices, const Receivers& receivers);

}  // namespace tp::core
