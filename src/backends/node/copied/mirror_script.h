// The sh programs for machines that share no storage with tpd, and the pieces of files that they answer with. Pure.
// All of them work on a machine's own attempt directories, which lie at the same paths as tpd's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backends/node/host_script.h"
#include "tp/attempt.h"

namespace tp::node {

// What tpd lacks of the files of one rank. Offsets are those of the first byte that it has not.
struct MirrorQuestion {
  size_t id = 0;  // names the answer
  std::string attempt_dir;
  int pool = 0;
  int rank = 0;
  bool attempt_claim = false;
  bool claim = false;
  bool started = false;
  bool ended = false;
  bool heartbeat = false;
  int64_t log_offset = 0;     // of the whole stream, docs/launch-contract.md
  int64_t system_offset = 0;  // of the runner's own log
  std::optional<int64_t> metrics_offset = std::nullopt;
};

// To be put behind a look: what is read then was written before any end that the look saw. Answers `copy` lines for
// ParsePiece, then `copies end`.
std::string MirrorProgram(const std::vector<MirrorQuestion>& questions);

enum class PieceKind { kAttemptClaim, kClaim, kStarted, kEnded, kHeartbeat, kLog, kSystem, kMetrics };

struct Piece {
  size_t id = 0;
  PieceKind kind = PieceKind::kClaim;
  int64_t begin = 0;   // kLog: where its file begins in the stream
  int64_t offset = 0;  // kLog, kSystem, kMetrics: of the first byte
  std::string bytes;
};

// Of one line; nothing for what is not understood.
std::optional<Piece> ParsePiece(std::string_view line);

// The directories of a run before its files are copied to a machine. Answers `storage <word>`: ok, or why not; and
// `others <n> <m>`: the attempts of this run whose files are still there, and whether there is any output (0: none).
// What an earlier copy of this step left running is ended first, and what its earlier attempts left is removed.
struct CopyInPlace {
  std::string storage_root;
  std::string attempt_dir;
  std::string results_dir;  // of the step
  std::string token;        // of a file `.shared.<token>` in tpd's attempt directory
  std::string copy_mark;    // of processes that copy for this step
};
std::string CopyInProgram(const CopyInPlace& place);

// Makes what the job left readable to its own user, so that it can be copied. Answers `ready <bytes>`, about as many as
// it wrote, or `gone` where the attempt's directory is not there.
std::string CopyOutProgram(const std::string& attempt_dir, int pool, int rank);

// Links attempt.claim for tpd, as launch::FenceAttempt does on its own storage, and tells what is found there.
std::string HostFenceProgram(size_t id, const std::string& attempt_dir, const std::string& fence_claim);

// What SignalProgram does, where an attempt may not have come to the machine at all. kKill closes the fence first,
// kWarn leaves the pause file afterwards.
std::string CopiedSignalProgram(const RankBinary& binary, const std::string& attempt_dir,
                                const std::vector<RankQuestion>& ranks, StopLevel level);

// Ends what is left of an attempt on a machine and closes its fence. Answers `settled`, or `alive`.
std::string SettleProgram(const RankBinary& binary, const std::string& attempt_dir,
                          const std::vector<RankQuestion>& ranks);

// Takes an attempt's files off a machine, and those of its run with the last of its attempts. Answers `removed`, or
// `left <why>`.
std::string RemoveCopyProgram(const std::string& storage_root, const std::string& attempt_dir);

// The directory of the run that an attempt is of.
std::string RunDirectoryOf(const std::string& attempt_dir);

}  // namespace tp::node
