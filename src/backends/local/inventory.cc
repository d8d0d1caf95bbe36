#include "backends/local/inventory.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <system_error>

#include <fmt/format.h>

#include "absl/time/clock.h"
#include "base/status.h"
#include "core/ids.h"
#include "launch/record.h"

namespace tp::local {
namespace {

namespace fs = std::filesystem;

// Beyond what any launch has: a job may write any name into its own directory.
constexpr int kMostPools = 16;
constexpr int kMostRanks = 1024;

// Gone meanwhile, or what a job put in the place of a claim: no attempt of ours.
bool SaysNothing(const absl::Status& status) {
  return absl::IsNotFound(status) || absl::IsFailedPrecondition(status) || absl::IsPermissionDenied(status);
}

class Inventory {
 public:
  Inventory(const Machine& machine, const std::string& deployment, absl::Time deadline)
      : machine_(machine), prefix_(fmt::format("tp-{}-e", deployment)), deadline_(deadline) {}

  absl::StatusOr<std::vector<InventoryItem>> Take() {
    TP_RETURN_IF_ERROR(FindLaunching());
    TP_RETURN_IF_ERROR(VisitRoot());
    std::vector<InventoryItem> items;
    items.reserve(objects_.size());
    for (const auto& [key, target] : objects_) items.push_back({.key = key, .holds_cards = true, .target = target});
    return items;
  }

 private:
  // Launches that may not have claimed yet.
  absl::Status FindLaunching() {
    TP_ASSIGN_OR_RETURN(const std::vector<MarkedProcess> launched, FindMarkedProcesses(kLaunchMark + prefix_));
    for (const MarkedProcess& process : launched) {
      objects_.try_emplace(prefix_ + process.rest.substr(0, process.rest.find('/')));
    }
    return absl::OkStatus();
  }

  // <storage.root>/<owner>/<run id>/attempts/<step>-<n>
  absl::Status VisitRoot() {
    TP_ASSIGN_OR_RETURN(const std::vector<std::string> owners, Subdirectories(machine_.storage.path()));
    for (const std::string& owner : owners) {
      TP_ASSIGN_OR_RETURN(const std::vector<std::string> runs, Subdirectories(owner));
      for (const std::string& run : runs) TP_RETURN_IF_ERROR(VisitRun(run));
    }
    return absl::OkStatus();
  }

  absl::Status VisitRun(const std::string& run) {
    TP_ASSIGN_OR_RETURN(const std::vector<std::string> attempts, Subdirectories(run + "/attempts"));
    for (const std::string& attempt : attempts) {
      if (absl::Now() > deadline_) {
        return Error(absl::StatusCode::kDeadlineExceeded, "the inventory of {} did not end in time",
                     machine_.storage.path());
      }
      const absl::Status visited = VisitAttempt(run, attempt);
      if (!visited.ok() && !SaysNothing(visited)) return visited;
    }
    return absl::OkStatus();
  }

  absl::Status VisitAttempt(const std::string& run, const std::string& path) {
    TP_ASSIGN_OR_RETURN(const Directory directory, OpenDirectory(path));
    TP_ASSIGN_OR_RETURN(const std::optional<std::string> claim,
                        ReadSmallFile(directory, "attempt.claim", launch::kMaxRecordBytes));
    const std::optional<std::string> key = claim ? launch::ParseKey(*claim) : std::nullopt;
    if (!key || !key->starts_with(prefix_)) return absl::OkStatus();
    AttemptTarget target{.key = *key, .nonce = "", .attempt_dir = path, .ranks_per_pool = {}};
    if (const auto owner = launch::ParseAttemptClaim(*claim, *key)) target.nonce = owner->nonce;
    TP_ASSIGN_OR_RETURN(const std::set<std::string> names, Names(path));
    bool alive = objects_.contains(*key);
    for (const std::string& name : names) {
      const std::optional<std::pair<int, int>> rank = RankOfClaim(name);
      if (!rank) continue;
      Count(*rank, target.ranks_per_pool);
      if (names.contains(fmt::format("{}-{}.exit", rank->first, rank->second))) continue;
      alive = alive || HasProcesses(path, rank->first, rank->second);
    }
    // Of two places that claim one key, one is forged: no orders follow from either.
    if (alive && IsItsPlace(*key, run, path) && placed_.insert(*key).second) {
      objects_[*key] = std::move(target);
    } else if (alive && placed_.contains(*key)) {
      objects_[*key] = std::nullopt;
    } else if (alive) {
      objects_.try_emplace(*key);
    }
    return absl::OkStatus();
  }

  // A job may write any claim into a directory of its own: no orders follow from it.
  static bool IsItsPlace(const std::string& key, const std::string& run, const std::string& path) {
    const std::optional<core::ParsedKey> parsed = core::ParseAttemptKey(key);
    return parsed && run.ends_with(fmt::format("-{}", parsed->attempt.step.run)) &&
           path.ends_with(fmt::format("-{}", parsed->attempt.attempt));
  }

  static void Count(std::pair<int, int> rank, std::vector<int>& ranks_per_pool) {
    const auto pool = static_cast<size_t>(rank.first);
    if (ranks_per_pool.size() <= pool) ranks_per_pool.resize(pool + 1);
    ranks_per_pool[pool] = std::max(ranks_per_pool[pool], rank.second + 1);
  }

  // What cannot be decided may be alive.
  bool HasProcesses(const std::string& attempt, int pool, int rank) const {
    return machine_.tool.CheckGone(attempt, pool, rank, deadline_) != RankTool::Reaped::kGone;
  }

  static std::optional<std::pair<int, int>> RankOfClaim(const std::string& name) {
    int pool = 0;
    int rank = 0;
    int end = 0;
    const int fields = std::sscanf(name.c_str(), "%9d-%9d.claim%n", &pool, &rank, &end);
    if (fields != 2 || static_cast<size_t>(end) != name.size() || pool < 0 || rank < 0) return std::nullopt;
    if (pool >= kMostPools || rank >= kMostRanks) return std::nullopt;  // no rank of ours
    return std::pair(pool, rank);
  }

  static absl::StatusOr<std::set<std::string>> Names(const std::string& path) {
    std::set<std::string> names;
    std::error_code error;
    for (fs::directory_iterator entry(path, error), end; !error && entry != end; entry.increment(error)) {
      names.insert(entry->path().filename().string());
    }
    if (error) return ErrnoStatus(error.value(), "list", path);
    return names;
  }

  // Empty where the directory itself is missing: it may not be made yet, or be gone by now.
  static absl::StatusOr<std::vector<std::string>> Subdirectories(const std::string& path) {
    const absl::StatusOr<std::set<std::string>> names = Names(path);
    if (absl::IsNotFound(names.status())) return std::vector<std::string>();
    TP_RETURN_IF_ERROR(names.status());
    std::vector<std::string> paths;
    for (const std::string& name : *names) {
      std::error_code error;
      const std::string child = fmt::format("{}/{}", path, name);
      if (!name.starts_with('.') && fs::symlink_status(child, error).type() == fs::file_type::directory) {
        paths.push_back(child);
      }
    }
    return paths;
  }

  const Machine& machine_;
  const std::string prefix_;
  const absl::Time deadline_;
  std::map<std::string, std::optional<AttemptTarget>> objects_;  // by key
  std::set<std::string> placed_;                                 // whose place was found
};

}  // namespace

absl::StatusOr<std::vector<InventoryItem>> TakeInventory(const Machine& machine, const std::string& deployment,
                                                         absl::Time deadline) {
  return Inventory(machine, deployment, deadline).Take();
}

}  // namespace tp::local
