// Reads the records of docs/launch-contract.md: bytes in, values out. Pure. Anything that is torn, of
// another key, or lacks what it must have reads as absent; unknown names are skipped.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tp/records.h"

namespace tp::launch {

// No record is longer; a file that is longer is none.
inline constexpr char kAttemptClaim[] = "attempt.claim";
inline constexpr size_t kMaxRecordBytes = 16 * 1024;

// Which rank of which attempt a record must name to count.
struct RankName {
  std::string_view key;
  int pool = 0;
  int rank = 0;
};

// Who linked attempt.claim.
struct AttemptClaim {
  bool fenced = false;  // tpd
  std::string nonce;    // of the owning launch call; empty when fenced
  bool operator==(const AttemptClaim&) const = default;
};

// The process that runs a rank.
struct RankClaim {
  std::string nonce;
  std::string host;
  std::string boot_id;
  int64_t runner_pid = 0;
  uint64_t runner_start_ticks = 0;
  std::string cgroup;  // empty: none
  bool operator==(const RankClaim&) const = default;
};

std::optional<AttemptClaim> ParseAttemptClaim(std::string_view bytes, std::string_view key);
std::optional<RankClaim> ParseRankClaim(std::string_view bytes, const RankName& name);
// Also from an end record, which repeats the start; absent there when the job never started.
std::optional<StartRecord> ParseStartRecord(std::string_view bytes, const RankName& name);
std::optional<EndRecord> ParseEndRecord(std::string_view bytes, const RankName& name);
// With the nonce it was written under, so that the reader can tell whose it is.
struct NoncedHeartbeat {
  std::string nonce;
  Heartbeat heartbeat;
};
std::optional<NoncedHeartbeat> ParseHeartbeat(std::string_view bytes, const RankName& name);

// The attempt's key as any record names it, for inventories.
std::optional<std::string> ParseKey(std::string_view bytes);

// The content with which tpd claims an attempt for itself.
std::string RenderFenceClaim(std::string_view key, std::string_view host, std::string_view boot_id);

}  // namespace tp::launch
