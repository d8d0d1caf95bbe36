#include "backends/node/copied/attempt_mirror.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include <fmt/format.h>

#include "base/since_boot.h"
#include "base/status.h"
#include "launch/record.h"

namespace tp::node {
namespace {

constexpr mode_t kRecordMode = 0660;
constexpr absl::Duration kHeartbeatEvery = absl::Seconds(4);  // below that of the reader
constexpr absl::Duration kEndKeptBackAtMost = absl::Minutes(2);
constexpr int64_t kDefaultLogBytes = int64_t{1} << 30;
constexpr int64_t kMaxSystemBytes = int64_t{64} << 20;
constexpr int64_t kMaxMirroredMetrics = int64_t{256} << 20;  // as many as are read

absl::StatusOr<bool> IsThere(const Directory& directory, const std::string& name) {
  struct stat about {};
  if (fstatat(directory.fd.get(), name.c_str(), &about, AT_SYMLINK_NOFOLLOW) == 0) return true;
  if (errno == ENOENT) return false;
  return ErrnoStatus(errno, "look at", directory.At(name));
}

}  // namespace

std::string AttemptMirror::Rank::Name(const char* suffix) const { return fmt::format("{}-{}{}", pool, rank, suffix); }

AttemptMirror::AttemptMirror(const AttemptTarget& target, const Handover& handover)
    : target_(target), handover_(handover), metrics_("metrics.jsonl", kMaxMirroredMetrics) {
  const int64_t log_bytes = handover.log_max_bytes > 0 ? handover.log_max_bytes : kDefaultLogBytes;
  for (size_t pool = 0; pool < target.ranks_per_pool.size(); ++pool) {
    for (int rank = 0; rank < target.ranks_per_pool[pool]; ++rank) {
      const std::string name = fmt::format("{}-{}", pool, rank);
      ranks_.push_back({.pool = static_cast<int>(pool),
                        .rank = rank,
                        .heartbeat_seen_at = std::nullopt,
                        .end_record = std::nullopt,
                        .kept_back_since = absl::ZeroDuration(),
                        .log = LogMirror(name + ".log", log_bytes),
                        .system = TailMirror(name + ".system.log", kMaxSystemBytes)});
    }
  }
}

absl::StatusOr<Directory> AttemptMirror::Open() const { return OpenDirectory(target_.attempt_dir); }

absl::Status AttemptMirror::LookForKnown(const Directory& directory, Rank& rank) {
  if (!attempt_claim_) {
    TP_ASSIGN_OR_RETURN(attempt_claim_, IsThere(directory, launch::kAttemptClaim));
  }
  for (auto [known, suffix] :
       {std::pair{&rank.claim, ".claim"}, std::pair{&rank.started, ".started"}, std::pair{&rank.ended, ".exit"}}) {
    if (*known) continue;
    TP_ASSIGN_OR_RETURN(*known, IsThere(directory, rank.Name(suffix)));
  }
  return absl::OkStatus();
}

absl::StatusOr<MirrorQuestion> AttemptMirror::Ask(size_t index) {
  Rank& rank = ranks_[index];
  TP_ASSIGN_OR_RETURN(const Directory directory, Open());
  TP_RETURN_IF_ERROR(LookForKnown(directory, rank));
  MirrorQuestion question{.attempt_dir = target_.attempt_dir, .pool = rank.pool, .rank = rank.rank};
  question.attempt_claim = !attempt_claim_;
  question.claim = !rank.claim;
  question.started = !rank.started;
  question.ended = !rank.ended;
  question.heartbeat = !rank.heartbeat_seen_at || SinceBoot() - *rank.heartbeat_seen_at >= kHeartbeatEvery;
  TP_ASSIGN_OR_RETURN(question.log_offset, rank.log.End(directory));
  TP_ASSIGN_OR_RETURN(question.system_offset, rank.system.End(directory));
  if (index == 0) {
    TP_ASSIGN_OR_RETURN(question.metrics_offset, metrics_.End(directory));
  }
  return question;
}

absl::Status AttemptMirror::Take(size_t index, const std::vector<Piece>& pieces) {
  if (pieces.empty() && !ranks_[index].end_record) return absl::OkStatus();
  TP_ASSIGN_OR_RETURN(const Directory directory, Open());
  Rank& rank = ranks_[index];
  bool log_grew = false;
  for (const Piece& piece : pieces) {
    log_grew = log_grew || piece.kind == PieceKind::kLog;
    if (piece.kind == PieceKind::kMetrics && index != 0) continue;
    TP_RETURN_IF_ERROR(TakePiece(directory, rank, piece));
  }
  return PutEndRecord(directory, rank, log_grew);
}

absl::Status AttemptMirror::TakePiece(const Directory& directory, Rank& rank, const Piece& piece) {
  switch (piece.kind) {
    case PieceKind::kLog:
      return rank.log.Append(directory, piece.begin, piece.offset, piece.bytes);
    case PieceKind::kSystem:
      return rank.system.Append(directory, piece.offset, piece.bytes);
    case PieceKind::kMetrics:
      return metrics_.Append(directory, piece.offset, piece.bytes);
    case PieceKind::kAttemptClaim:
      return TakeAttemptClaim(directory, piece.bytes);
    case PieceKind::kClaim:
    case PieceKind::kStarted:
    case PieceKind::kEnded:
    case PieceKind::kHeartbeat:
      return TakeRecord(directory, rank, piece);
  }
  return absl::OkStatus();
}

// Only one launch call is ever handed an attempt, so a machine with another one's claim is not what it was.
absl::Status AttemptMirror::TakeAttemptClaim(const Directory& directory, const std::string& bytes) {
  const std::optional<launch::AttemptClaim> claim = launch::ParseAttemptClaim(bytes, target_.key);
  if (!claim || claim->fenced) return absl::OkStatus();
  if (!IsOfHandover(claim->nonce)) {
    return FailedPrecondition("{} is claimed there by a launch that tpd did not hand it to", target_.key);
  }
  TP_RETURN_IF_ERROR(LinkNewFile(directory, launch::kAttemptClaim, bytes, kRecordMode, Sync::kDurable).status());
  attempt_claim_ = true;
  return absl::OkStatus();
}

absl::Status AttemptMirror::TakeRecord(const Directory& directory, Rank& rank, const Piece& piece) {
  const launch::RankName name{target_.key, rank.pool, rank.rank};
  const auto is_ours = [&](const auto& record) { return record && IsOfHandover(record->nonce); };
  switch (piece.kind) {
    case PieceKind::kClaim:
      if (rank.claim || !is_ours(launch::ParseRankClaim(piece.bytes, name))) return absl::OkStatus();
      rank.claim = true;
      return LinkNewFile(directory, rank.Name(".claim"), piece.bytes, kRecordMode, Sync::kDurable).status();
    case PieceKind::kStarted:
      if (rank.started || !is_ours(launch::ParseStartRecord(piece.bytes, name))) return absl::OkStatus();
      rank.started = true;
      return ReplaceFile(directory, rank.Name(".started"), piece.bytes, kRecordMode, Sync::kNone);
    case PieceKind::kEnded:
      if (!rank.ended && is_ours(launch::ParseEndRecord(piece.bytes, name))) {
        if (!rank.end_record) rank.kept_back_since = SinceBoot();
        rank.end_record = piece.bytes;
      }
      return absl::OkStatus();
    case PieceKind::kHeartbeat:
      if (!is_ours(launch::ParseHeartbeat(piece.bytes, name))) return absl::OkStatus();
      rank.heartbeat_seen_at = SinceBoot();
      return ReplaceFile(directory, rank.Name(".heartbeat"), piece.bytes, kRecordMode, Sync::kNone);
    case PieceKind::kAttemptClaim:
    case PieceKind::kLog:
    case PieceKind::kSystem:
    case PieceKind::kMetrics:
      return absl::OkStatus();
  }
  return absl::OkStatus();
}

absl::Status AttemptMirror::PutEndRecord(const Directory& directory, Rank& rank, bool log_grew) {
  if (!rank.end_record) return absl::OkStatus();
  const auto end = launch::ParseEndRecord(*rank.end_record, {target_.key, rank.pool, rank.rank});
  TP_ASSIGN_OR_RETURN(const int64_t log_end, rank.log.End(directory));
  const bool tells_why = end && !end->clean() && !end->signalled();
  const bool log_is_here = !tells_why || log_end >= end->log_bytes;
  if (!log_is_here && log_grew && SinceBoot() - rank.kept_back_since < kEndKeptBackAtMost) return absl::OkStatus();
  TP_RETURN_IF_ERROR(ReplaceFile(directory, rank.Name(".exit"), *rank.end_record, kRecordMode, Sync::kDurable));
  rank.ended = true;
  rank.end_record.reset();
  return absl::OkStatus();
}

}  // namespace tp::node
