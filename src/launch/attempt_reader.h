// Reads an attempt directory again and again at the cost of what changed: a directory that shows no
// change is opened and looked at, nothing more. Records never change once written, so each is read once.
// One reader per attempt; not thread-safe.
#pragma once

#include <sys/stat.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/file.h"
#include "launch/record.h"
#include "tp/attempt.h"
#include "tp/records.h"

namespace tp::launch {

// What a rank left, as far as it belongs to the launch call that owns the attempt.
struct RankFiles {
  int pool = 0;
  int rank = 0;
  std::optional<RankClaim> claim;
  std::optional<StartRecord> started;
  std::optional<EndRecord> ended;
  std::optional<Heartbeat> heartbeat;
};

struct AttemptFiles {
  std::optional<AttemptClaim> claim;
  bool fence_closed = false;     // read before the claims: a rank without one can then never start
  std::vector<RankFiles> ranks;  // in (pool, rank) order
};

struct ReaderOptions {
  // A directory changed this recently may change again without a new time stamp: it is listed again.
  absl::Duration settle = absl::Milliseconds(100);
  // How often the heartbeats of ranks that run are read.
  absl::Duration heartbeat_every = absl::Seconds(5);
};

class AttemptReader {
 public:
  AttemptReader(std::string key, std::string attempt_dir, const std::vector<int>& ranks_per_pool,
                const ReaderOptions& options);

  // A missing directory is an attempt without files. Any other trouble is an error, and so is an
  // attempt.claim that names no owner: what is true of the attempt is then unknown. The pointer is valid
  // until the next call.
  absl::StatusOr<const AttemptFiles*> Read();

  // The same, listing the directory whatever its time stamps say.
  absl::StatusOr<const AttemptFiles*> ReadFresh();

 private:
  // One rank's records as they are on storage, whoever's they are.
  struct Cached {
    std::optional<RankClaim> claim;
    std::optional<StartRecord> started;
    std::optional<EndRecord> ended;
    std::optional<NoncedHeartbeat> heartbeat;
  };

  absl::Status Refresh(bool list_anyway);
  bool MayHaveChanged(const struct stat& now) const;
  absl::Status ReadFence(const Directory& directory);
  absl::Status ReadNew(const Directory& directory);
  absl::Status ReadNamed(const Directory& directory, const std::string& name);
  void ReadEnd(const Directory& directory, const std::string& bytes, size_t index);
  absl::Status ReadAttemptClaim(const Directory& directory);
  absl::Status ReadHeartbeats(const Directory& directory);
  absl::Status ReadHeartbeat(const Directory& directory, size_t index);
  absl::StatusOr<std::optional<std::string>> ReadRecord(const Directory& directory, const std::string& name) const;
  std::optional<size_t> IndexOf(std::string_view pool_and_rank) const;
  RankName NameOf(size_t index) const;
  bool AllClaimed() const;
  void Assemble();

  std::string key_;
  std::string attempt_dir_;
  ReaderOptions options_;

  std::optional<AttemptClaim> claim_;
  bool fence_closed_ = false;
  std::vector<size_t> first_of_pool_;  // index of each pool's rank 0, then the count of ranks
  std::vector<Cached> cached_;
  absl::Time heartbeats_read_ = absl::InfinitePast();
  struct stat listed_ {};  // the directory as it was when last listed
  absl::Time listed_at_ = absl::InfinitePast();

  AttemptFiles files_;
};

}  // namespace tp::launch
