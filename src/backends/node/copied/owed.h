// Attempts that a machine must be rid of before anything else is copied to it: those that ended without it because an
// admin declared it dead. Kept in a directory of tpd's own, so that a machine that comes back after a restart of tpd is
// seen to all the same. Thread-safe.
#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "backends/node/host_link.h"
#include "backends/node/host_script.h"
#include "tp/attempt.h"

namespace tp::node {

class Owed {
 public:
  // `directory` is made where it is missing. All outlive this.
  Owed(std::string directory, const RankBinary& binary, const std::string& storage_root)
      : directory_(std::move(directory)), binary_(binary), storage_root_(storage_root) {}

  // Repeated, it is once.
  absl::Status Add(const RankHost& host, const AttemptTarget& target);

  // Ends what is owed there, closes its fences and takes its files away. OK where nothing is owed (any more).
  absl::Status Settle(HostLink& link, absl::Time deadline);

 private:
  struct Debt {
    std::string key;
    std::string attempt_dir;
    std::vector<int> ranks_per_pool;
  };

  std::string PlaceOf(const RankHost& host) const;
  absl::StatusOr<std::vector<Debt>> Read(const RankHost& host) const;
  absl::Status SettleOne(HostLink& link, const Debt& debt, absl::Time deadline);

  const std::string directory_;
  const RankBinary& binary_;
  const std::string& storage_root_;
  std::mutex mutex_;
};

}  // namespace tp::node
