// The records, logs and metrics of one attempt, brought from the machines of its ranks into tpd's own attempt
// directory, where all that reads attempts finds them as on storage that is shared. What a machine sends is taken for
// what it may be: records of the rank that was asked about and of the launch call that tpd handed the attempt to, of
// bounded size, under fixed names. Not thread-safe.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "backends/node/copied/handover.h"
#include "backends/node/copied/log_mirror.h"
#include "backends/node/copied/mirror_script.h"
#include "base/file.h"
#include "tp/attempt.h"

namespace tp::node {

class AttemptMirror {
 public:
  AttemptMirror(const AttemptTarget& target, const Handover& handover);

  // What is to be asked of the machine of a rank, by its index in (pool, rank) order.
  absl::StatusOr<MirrorQuestion> Ask(size_t rank);

  // What it answered. An end record of a failure is kept back until the log before it is here, which tells why it
  // failed, or until that no longer grows.
  absl::Status Take(size_t rank, const std::vector<Piece>& pieces);

  // The rank has ended, and its record is not yet where records are read.
  bool KeepsEndBack(size_t rank) const { return ranks_[rank].end_record.has_value(); }

 private:
  struct Rank {
    int pool = 0;
    int rank = 0;
    bool claim = false;
    bool started = false;
    bool ended = false;
    std::optional<absl::Duration> heartbeat_seen_at;  // by the monotonic clock
    std::optional<std::string> end_record;            // kept back
    absl::Duration kept_back_since;                   // by the monotonic clock
    LogMirror log;
    TailMirror system;
    std::string Name(const char* suffix) const;
  };

  absl::StatusOr<Directory> Open() const;
  absl::Status LookForKnown(const Directory& directory, Rank& rank);
  absl::Status TakePiece(const Directory& directory, Rank& rank, const Piece& piece);
  absl::Status TakeAttemptClaim(const Directory& directory, const std::string& bytes);
  absl::Status TakeRecord(const Directory& directory, Rank& rank, const Piece& piece);
  absl::Status PutEndRecord(const Directory& directory, Rank& rank, bool log_grew);
  bool IsOfHandover(const std::string& nonce) const { return nonce == handover_.nonce; }

  const AttemptTarget target_;
  const Handover handover_;
  bool attempt_claim_ = false;
  std::vector<Rank> ranks_;
  TailMirror metrics_;
};

}  // namespace tp::node
