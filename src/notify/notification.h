// What receivers are told of a change of a run. Nothing of a run's environment or command is in it: these may hold
// secrets. The format is documented in docs/notifications.md. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/notice.h"
#include "store/store.h"

namespace tp::notify {

// The same at every try, also after a restart: receivers tell repetitions by its id.
struct Notification {
  std::string id;
  std::string receiver;   // name of a webhook, or core::kMailReceiver
  std::string recipient;  // of mail; else empty
  int64_t run = 0;
  std::string body;  // JSON; of mail the whole mail
  bool operator==(const Notification&) const = default;
};

// Who speaks.
struct Sender {
  std::string deployment;
  std::string instance;  // random, kept with the outbox: ids of two deployments never meet
};

// What receivers are told of every run.
using Feeds = std::map<std::string, std::vector<core::NoticeEvent>>;

// One for each receiver that the run's owner or an admin wants told, however often they say so.
std::vector<Notification> NotificationsOf(const store::WordChange& change, const Feeds& feeds, const Sender& sender);

}  // namespace tp::notify
