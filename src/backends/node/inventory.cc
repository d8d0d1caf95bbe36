#include "backends/node/inventory.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <system_error>

#include <fmt/format.h>

#include "backends/node/crew.h"
#include "base/file.h"
#include "base/status.h"
#include "core/ids.h"
#include "launch/record.h"

namespace tp::node {
namespace {

namespace fs = std::filesystem;

constexpr int kMostNodePools = 1;
constexpr int kMostNodeRanks = 64;

// Names of entries; none where the directory cannot be read: then only the orders to what is there are missing.
std::vector<std::string> NamesIn(const std::string& path) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(path, error), end; !error && entry != end; entry.increment(error)) {
    names.push_back(entry->path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// The attempt directories that an attempt of this key has its place in, by its run's and its own number.
std::vector<std::string> PlacesOf(const core::ParsedKey& key, const std::string& root) {
  std::vector<std::string> places;
  const std::string run_end = fmt::format("-{}", key.attempt.step.run);
  const std::string attempt_end = fmt::format("-{}", key.attempt.attempt);
  for (const std::string& owner : NamesIn(root)) {
    if (owner.starts_with('.')) continue;
    for (const std::string& run : NamesIn(fmt::format("{}/{}", root, owner))) {
      if (!run.ends_with(run_end)) continue;
      const std::string attempts = fmt::format("{}/{}/{}/attempts", root, owner, run);
      for (const std::string& attempt : NamesIn(attempts)) {
        if (attempt.ends_with(attempt_end)) places.push_back(fmt::format("{}/{}", attempts, attempt));
      }
    }
  }
  return places;
}

// Hosts by the name that records have for them.
using Machines = std::map<std::string, RankHost>;

std::optional<AttemptTarget> ReadTarget(const std::string& key, const std::string& path, const Machines& machines) {
  const absl::StatusOr<Directory> directory = OpenDirectory(path);
  if (!directory.ok()) return std::nullopt;
  const auto claim = ReadSmallFile(*directory, launch::kAttemptClaim, launch::kMaxRecordBytes);
  if (!claim.ok() || !*claim) return std::nullopt;
  const auto owner = launch::ParseAttemptClaim(**claim, key);
  if (!owner || owner->fenced) return std::nullopt;
  AttemptTarget target{.key = key, .nonce = owner->nonce, .attempt_dir = path, .ranks_per_pool = {}};
  for (int pool = 0; pool < kMostNodePools; ++pool) {
    for (int rank = 0; rank < kMostNodeRanks; ++rank) {
      const auto bytes = ReadSmallFile(*directory, fmt::format("{}-{}.claim", pool, rank), launch::kMaxRecordBytes);
      if (!bytes.ok() || !*bytes) continue;
      const auto rank_claim = launch::ParseRankClaim(**bytes, {key, pool, rank});
      if (!rank_claim || rank_claim->nonce != owner->nonce) continue;
      target.hosts.resize(static_cast<size_t>(rank) + 1);
      const auto machine = machines.find(rank_claim->host);
      if (machine != machines.end()) target.hosts.back() = machine->second;
    }
  }
  if (target.hosts.empty()) return std::nullopt;
  target.ranks_per_pool = {static_cast<int>(target.hosts.size())};
  return target;
}

// Of two places that claim one key, one is forged: no orders follow from either.
std::optional<AttemptTarget> FindTarget(const std::string& key, const std::string& root, const Machines& machines) {
  const std::optional<core::ParsedKey> parsed = core::ParseAttemptKey(key);
  if (!parsed) return std::nullopt;
  std::optional<AttemptTarget> found;
  for (const std::string& place : PlacesOf(*parsed, root)) {
    std::optional<AttemptTarget> target = ReadTarget(key, place, machines);
    if (!target) continue;
    if (found) return std::nullopt;
    found = std::move(target);
  }
  return found;
}

}  // namespace

absl::StatusOr<std::vector<InventoryItem>> TakeInventory(const std::vector<std::shared_ptr<HostLink>>& links,
                                                         const std::string& deployment, const std::string& storage_root,
                                                         absl::Time deadline) {
  std::vector<HostAnswer> answers(links.size());
  const std::string program = InventoryProgram(deployment);
  ForEachAtOnce(links.size(), [&](size_t i) { answers[i] = links[i]->Ask({.text = program, .body = {}}, deadline); });
  Machines machines;
  std::set<std::string> keys;
  for (size_t i = 0; i < links.size(); ++i) {
    if (const auto* silence = std::get_if<HostSilence>(&answers[i])) {
      return Unavailable("the processes of {} are not known: {}", links[i]->host().node, silence->why);
    }
    const auto& reply = std::get<HostReply>(answers[i]);
    if (!reply.marks_whole) return Unavailable("{} did not list all its processes", links[i]->host().node);
    machines[reply.facts.host] = links[i]->host();
    for (const Mark& mark : reply.marks) keys.insert(mark.text.substr(0, mark.text.find('/')));
  }
  std::vector<InventoryItem> items;
  items.reserve(keys.size());
  for (const std::string& key : keys) {
    items.push_back({.key = key, .holds_cards = true, .target = FindTarget(key, storage_root, machines)});
  }
  return items;
}

}  // namespace tp::node
