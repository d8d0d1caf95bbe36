#include "launch/attempt_reader.h"

#include <dirent.h>
#include <fcntl.h>

#include <cerrno>
#include <charconv>
#include <memory>

#include <fmt/format.h>

#include "absl/time/clock.h"
#include "base/status.h"
#include "core/log_mark.h"

namespace tp::launch {
namespace {

// A traceback and what follows it.
constexpr size_t kLogEndBytes = 64 * 1024;

std::optional<size_t> ParseIndex(std::string_view text) {
  size_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

absl::StatusOr<std::vector<std::string>> ListNames(const Directory& directory) {
  UniqueFd copy(openat(directory.fd.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(fdopendir(copy.get()), closedir);
  if (!stream) return ErrnoStatus(errno, "list", directory.path);
  copy.release();
  std::vector<std::string> names;
  for (;;) {
    errno = 0;
    const dirent* entry = readdir(stream.get());
    if (entry == nullptr) break;
    names.emplace_back(entry->d_name);
  }
  if (errno != 0) return ErrnoStatus(errno, "list", directory.path);
  return names;
}

}  // namespace

AttemptReader::AttemptReader(std::string key, std::string attempt_dir, const std::vector<int>& ranks_per_pool,
                             const ReaderOptions& options)
    : key_(std::move(key)), attempt_dir_(std::move(attempt_dir)), options_(options) {
  for (size_t pool = 0; pool < ranks_per_pool.size(); ++pool) {
    first_of_pool_.push_back(files_.ranks.size());
    for (int rank = 0; rank < ranks_per_pool[pool]; ++rank) {
      files_.ranks.push_back(
          {.pool = static_cast<int>(pool), .rank = rank, .claim = {}, .started = {}, .ended = {}, .heartbeat = {}});
    }
  }
  first_of_pool_.push_back(files_.ranks.size());
  cached_.resize(files_.ranks.size());
}

absl::StatusOr<const AttemptFiles*> AttemptReader::Read() {
  TP_RETURN_IF_ERROR(Refresh(false));
  return &files_;
}

absl::StatusOr<const AttemptFiles*> AttemptReader::ReadFresh() {
  TP_RETURN_IF_ERROR(Refresh(true));
  return &files_;
}

absl::Status AttemptReader::Refresh(bool list_anyway) {
  absl::StatusOr<Directory> directory = OpenDirectory(attempt_dir_);
  if (absl::IsNotFound(directory.status())) {
    // Claims that were read cannot have become untrue, but their storage is not what it was.
    return claim_ ? directory.status() : absl::OkStatus();
  }
  TP_RETURN_IF_ERROR(directory.status());
  // The fence first: only a claim that is still missing after it was closed will never come.
  TP_RETURN_IF_ERROR(ReadFence(*directory));
  struct stat now {};
  if (fstat(directory->fd.get(), &now) != 0) return ErrnoStatus(errno, "look at", attempt_dir_);
  const absl::Time looked_at = absl::Now();
  if (list_anyway || MayHaveChanged(now)) {
    TP_RETURN_IF_ERROR(ReadNew(*directory));
    listed_ = now;
    listed_at_ = looked_at;
  }
  TP_RETURN_IF_ERROR(ReadHeartbeats(*directory));
  Assemble();
  return absl::OkStatus();
}

bool AttemptReader::MayHaveChanged(const struct stat& now) const {
  const bool same = now.st_ino == listed_.st_ino && now.st_mtim.tv_sec == listed_.st_mtim.tv_sec &&
                    now.st_mtim.tv_nsec == listed_.st_mtim.tv_nsec;
  return !same || listed_at_ - absl::TimeFromTimespec(now.st_mtim) < options_.settle;
}

absl::Status AttemptReader::ReadFence(const Directory& directory) {
  if (fence_closed_ || AllClaimed()) return absl::OkStatus();
  TP_ASSIGN_OR_RETURN(const std::optional<std::string> bytes, ReadSmallFile(directory, "fence", 64));
  fence_closed_ = bytes == "closed\n";
  return absl::OkStatus();
}

absl::Status AttemptReader::ReadNew(const Directory& directory) {
  TP_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListNames(directory));
  for (const std::string& name : names) TP_RETURN_IF_ERROR(ReadNamed(directory, name));
  return absl::OkStatus();
}

absl::Status AttemptReader::ReadNamed(const Directory& directory, const std::string& name) {
  if (name == kAttemptClaim) return ReadAttemptClaim(directory);
  const size_t dot = name.find('.');
  if (dot == std::string::npos) return absl::OkStatus();
  const std::optional<size_t> index = IndexOf(std::string_view(name).substr(0, dot));
  if (!index) return absl::OkStatus();
  Cached& rank = cached_[*index];
  const std::string_view suffix = std::string_view(name).substr(dot);
  const bool wanted = (suffix == ".claim" && !rank.claim) || (suffix == ".started" && !rank.started) ||
                      (suffix == ".exit" && !rank.ended);
  if (suffix == ".heartbeat" && !rank.heartbeat && !rank.ended) return ReadHeartbeat(directory, *index);
  if (!wanted) return absl::OkStatus();
  TP_ASSIGN_OR_RETURN(const std::optional<std::string> bytes, ReadRecord(directory, name));
  if (!bytes) return absl::OkStatus();
  if (suffix == ".claim") rank.claim = ParseRankClaim(*bytes, NameOf(*index));
  if (suffix == ".exit") ReadEnd(directory, *bytes, *index);
  if (suffix != ".claim" && !rank.started) rank.started = ParseStartRecord(*bytes, NameOf(*index));
  return absl::OkStatus();
}

// The log is whole: the runner wrote it out before the record. What a user may have put in its place holds up nothing.
void AttemptReader::ReadEnd(const Directory& directory, const std::string& bytes, size_t index) {
  std::optional<EndRecord> end = ParseEndRecord(bytes, NameOf(index));
  if (end && !end->clean() && !end->signalled()) {
    const RankFiles& rank = files_.ranks[index];
    const auto log_end = ReadFileEnd(directory, fmt::format("{}-{}.log", rank.pool, rank.rank), kLogEndBytes);
    if (log_end.ok() && *log_end) end->log_mark = core::FindLogMark(**log_end);
  }
  cached_[index].ended = std::move(end);
}

absl::Status AttemptReader::ReadAttemptClaim(const Directory& directory) {
  if (claim_) return absl::OkStatus();
  TP_ASSIGN_OR_RETURN(const std::optional<std::string> bytes, ReadRecord(directory, kAttemptClaim));
  if (!bytes) return absl::OkStatus();
  claim_ = ParseAttemptClaim(*bytes, key_);
  if (claim_) return absl::OkStatus();
  return FailedPrecondition("{} is torn or of another attempt than {}", directory.At(kAttemptClaim), key_);
}

absl::Status AttemptReader::ReadHeartbeats(const Directory& directory) {
  const absl::Time now = absl::Now();
  if (now - heartbeats_read_ < options_.heartbeat_every && now >= heartbeats_read_) return absl::OkStatus();
  for (size_t index = 0; index < cached_.size(); ++index) {
    if (cached_[index].heartbeat && !cached_[index].ended) TP_RETURN_IF_ERROR(ReadHeartbeat(directory, index));
  }
  heartbeats_read_ = now;
  return absl::OkStatus();
}

// Rewritten in place: a beat that was caught half-way parses as none, and the last one stands.
absl::Status AttemptReader::ReadHeartbeat(const Directory& directory, size_t index) {
  const RankFiles& rank = files_.ranks[index];
  TP_ASSIGN_OR_RETURN(const std::optional<std::string> bytes,
                      ReadRecord(directory, fmt::format("{}-{}.heartbeat", rank.pool, rank.rank)));
  if (!bytes) return absl::OkStatus();
  if (std::optional<NoncedHeartbeat> beat = ParseHeartbeat(*bytes, NameOf(index))) {
    cached_[index].heartbeat = std::move(beat);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::optional<std::string>> AttemptReader::ReadRecord(const Directory& directory,
                                                                     const std::string& name) const {
  return ReadSmallFile(directory, name, kMaxRecordBytes);
}

std::optional<size_t> AttemptReader::IndexOf(std::string_view pool_and_rank) const {
  const size_t dash = pool_and_rank.find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  const std::optional<size_t> pool = ParseIndex(pool_and_rank.substr(0, dash));
  const std::optional<size_t> rank = ParseIndex(pool_and_rank.substr(dash + 1));
  if (!pool || !rank || *pool + 1 >= first_of_pool_.size()) return std::nullopt;
  const size_t ranks = first_of_pool_[*pool + 1] - first_of_pool_[*pool];
  return *rank < ranks ? std::optional(first_of_pool_[*pool] + *rank) : std::nullopt;
}

RankName AttemptReader::NameOf(size_t index) const {
  return {key_, files_.ranks[index].pool, files_.ranks[index].rank};
}

bool AttemptReader::AllClaimed() const {
  for (const Cached& rank : cached_) {
    if (!rank.claim) return false;
  }
  return true;
}

// Records of another launch call than the owner are no evidence.
void AttemptReader::Assemble() {
  files_.claim = claim_;
  files_.fence_closed = fence_closed_;
  const std::string owner = claim_ ? claim_->nonce : "";
  for (size_t index = 0; index < cached_.size(); ++index) {
    const Cached& cached = cached_[index];
    RankFiles& rank = files_.ranks[index];
    const auto of_owner = [&owner](const auto& record) { return record && !owner.empty() && record->nonce == owner; };
    rank.claim = of_owner(cached.claim) ? cached.claim : std::nullopt;
    rank.started = of_owner(cached.started) ? cached.started : std::nullopt;
    rank.ended = of_owner(cached.ended) ? cached.ended : std::nullopt;
    rank.heartbeat = of_owner(cached.heartbeat) ? std::optional(cached.heartbeat->heartbeat) : std::nullopt;
  }
}

}  // namespace tp::launch
