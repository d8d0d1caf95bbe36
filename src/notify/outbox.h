// What still has to be delivered, and how far the changes of runs were followed: a small database that the notifier
// alone owns, `notify.db` in tpd's data directory. Every call is one durable transaction.
//
// Threads: one at a time. Errors are those of store/sqlite.h.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "notify/notification.h"
#include "notify/retry.h"
#include "notify/status.h"
#include "store/sqlite.h"

namespace tp::notify {

struct Pending {
  int64_t seq = 0;  // in the order in which they came to be
  Notification notification;
  absl::Time created_at;
  int32_t tries = 0;
  absl::Time next_try_at;
  bool operator==(const Pending&) const = default;
};

class Outbox {
 public:
  // Makes the file where there is none: it begins at revision `present`, with a new instance name.
  static absl::StatusOr<std::unique_ptr<Outbox>> Open(const std::string& path, int64_t present);

  const std::string& instance() const { return instance_; }

  // Changes up to this revision need not be looked at again.
  int64_t followed() const { return followed_; }

  // A notification that is there already stays as it is.
  absl::Status Append(const std::vector<Notification>& notifications, int64_t followed, absl::Time now);

  // Of each run and recipient the oldest, those that are tried next first.
  absl::StatusOr<std::vector<Pending>> Next(const std::string& receiver, size_t limit);

  // `result` is what the verdict was made of.
  absl::Status Record(const Pending& pending, const Verdict& verdict, const TryResult& result, absl::Time now);

  // By sequence; those that were there before `created_before`.
  absl::StatusOr<std::vector<Pending>> OlderThan(absl::Time created_before);

  // All that anything was ever sent to, by name; `configured` is false.
  absl::StatusOr<std::vector<ReceiverStatus>> Tallies();

 private:
  explicit Outbox(store::Database database) : database_(std::move(database)) {}

  absl::Status ReadPosition(int64_t present);

  store::Database database_;
  std::string instance_;
  int64_t followed_ = 0;
};

}  // namespace tp::notify
