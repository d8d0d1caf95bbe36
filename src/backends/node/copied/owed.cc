#include "backends/node/copied/owed.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <sstream>
#include <system_error>

#include <fmt/format.h>

#include "backends/node/copied/mirror_script.h"
#include "base/file.h"
#include "base/sha256.h"
#include "base/status.h"

namespace tp::node {
namespace {

constexpr size_t kMaxDebtBytes = 16 * 1024;
constexpr char kDebtHeader[] = "tp-owed 1";

std::vector<RankQuestion> AllRanks(const std::string& attempt_dir, const std::vector<int>& ranks_per_pool) {
  std::vector<RankQuestion> ranks;
  for (size_t pool = 0; pool < ranks_per_pool.size(); ++pool) {
    for (int rank = 0; rank < ranks_per_pool[pool]; ++rank) {
      ranks.push_back({ranks.size(), attempt_dir, static_cast<int>(pool), rank, "", 0, 0});
    }
  }
  return ranks;
}

}  // namespace

std::string Owed::PlaceOf(const RankHost& host) const {
  Sha256 name;
  name.Update(host.node);
  return name.HexDigest().substr(0, 32);
}

absl::Status Owed::Add(const RankHost& host, const AttemptTarget& target) {
  const std::lock_guard lock(mutex_);
  if (mkdir(directory_.c_str(), 0700) != 0 && errno != EEXIST) return ErrnoStatus(errno, "make", directory_);
  TP_ASSIGN_OR_RETURN(const Directory place, MakeDirectoriesBeneath(directory_, PlaceOf(host), 0700));
  std::string text = fmt::format("{}\n{}\n", kDebtHeader, target.attempt_dir);
  for (const int ranks : target.ranks_per_pool) text += fmt::format("{}\n", ranks);
  TP_ASSIGN_OR_RETURN(const bool made, LinkNewFile(place, target.key, text + "end\n", 0600, Sync::kDurable));
  if (!made) return absl::OkStatus();
  TP_ASSIGN_OR_RETURN(const Directory top, OpenDirectory(directory_));
  return SyncDirectory(top);
}

absl::StatusOr<std::vector<Owed::Debt>> Owed::Read(const RankHost& host) const {
  std::vector<Debt> debts;
  const std::string path = fmt::format("{}/{}", directory_, PlaceOf(host));
  const absl::StatusOr<Directory> place = OpenDirectory(path);
  if (absl::IsNotFound(place.status())) return debts;
  TP_RETURN_IF_ERROR(place.status());
  std::error_code error;
  for (std::filesystem::directory_iterator entry(path, error), end; !error && entry != end; entry.increment(error)) {
    Debt debt{.key = entry->path().filename().string(), .attempt_dir = {}, .ranks_per_pool = {}};
    if (debt.key.starts_with('.')) continue;
    TP_ASSIGN_OR_RETURN(const std::optional<std::string> bytes, ReadSmallFile(*place, debt.key, kMaxDebtBytes));
    std::istringstream text(bytes.value_or(""));
    std::string header;
    if (!std::getline(text, header) || header != kDebtHeader || !std::getline(text, debt.attempt_dir)) continue;
    for (int ranks = 0; text >> ranks;) debt.ranks_per_pool.push_back(ranks);
    debts.push_back(std::move(debt));
  }
  if (error) return Unavailable("{} cannot be listed: {}", path, error.message());
  return debts;
}

absl::Status Owed::Settle(HostLink& link, absl::Time deadline) {
  const std::lock_guard lock(mutex_);
  TP_ASSIGN_OR_RETURN(const std::vector<Debt> debts, Read(link.host()));
  for (const Debt& debt : debts) TP_RETURN_IF_ERROR(SettleOne(link, debt, deadline));
  return absl::OkStatus();
}

absl::Status Owed::SettleOne(HostLink& link, const Debt& debt, absl::Time deadline) {
  const std::string& node = link.host().node;
  const std::vector<RankQuestion> ranks = AllRanks(debt.attempt_dir, debt.ranks_per_pool);
  HostAnswer answer = link.Ask({.text = SettleProgram(binary_, debt.attempt_dir, ranks), .body = {}}, deadline);
  if (const auto* silence = std::get_if<HostSilence>(&answer)) return Unavailable("{}", silence->why);
  if (std::get<HostReply>(answer).words != "settled") {
    return Unavailable("what {} left running on {} before that was declared dead is still being ended", debt.key, node);
  }
  answer = link.Ask({.text = RemoveCopyProgram(storage_root_, debt.attempt_dir), .body = {}}, deadline);
  if (const auto* silence = std::get_if<HostSilence>(&answer)) return Unavailable("{}", silence->why);
  if (std::get<HostReply>(answer).words != "removed") {
    return Unavailable("the files of {} cannot be removed from {}: {}", debt.key, node,
                       std::get<HostReply>(answer).words);
  }
  const std::string path = fmt::format("{}/{}/{}", directory_, PlaceOf(link.host()), debt.key);
  return unlink(path.c_str()) == 0 || errno == ENOENT ? absl::OkStatus() : ErrnoStatus(errno, "remove", path);
}

}  // namespace tp::node
