// `notify` in tpd.yaml: the receivers that users may name in theirs. The registry carries them, so that they come
// into force with a reload.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/notice.h"
#include "decode/type.h"

namespace tp::config {

struct WebhookEntry {
  std::string name;
  std::string url;
  bool allow_http = false;
  std::string secret_file;
  std::vector<core::NoticeEvent> on;
};

struct ReceiversEntry {
  std::vector<decode::Located<WebhookEntry>> webhooks;
  std::optional<decode::Located<core::MailHook>> mail;
};

decode::Type<ReceiversEntry> ReceiversType();

// Rules between keys add to `problems`. No sentence holds a url, which may be a secret.
core::Receivers BuildReceivers(const ReceiversEntry& entry, decode::Problems& problems);

}  // namespace tp::config
