#include "backends/local/local_backend.h"

#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include <fmt/format.h>

#include "absl/time/clock.h"
#include "backends/local/cgroups.h"
#include "backends/local/inventory.h"
#include "base/fault_point.h"
#include "base/overloaded.h"
#include "base/status.h"
#include "launch/engine_call.h"

namespace tp::local {
namespace {

// An attempt that nobody asked about for this long is over; asked again, it is read anew.
constexpr absl::Duration kDropAfter = absl::Minutes(10);
constexpr absl::Duration kDropEvery = absl::Minutes(1);
constexpr absl::Duration kCheckLimit = absl::Seconds(10);
constexpr absl::Duration kPreflightLimit = absl::Seconds(10);

// What a login would set: the machine is the image.
std::map<std::string, std::string> BaseEnv() {
  std::map<std::string, std::string> env = {
      {"PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
      {"LANG", "C.UTF-8"},
  };
  passwd entry{};
  passwd* found = nullptr;
  std::array<char, 16 * 1024> buffer{};
  if (getpwuid_r(geteuid(), &entry, buffer.data(), buffer.size(), &found) == 0 && found != nullptr) {
    env["HOME"] = found->pw_dir;
    env["USER"] = found->pw_name;
    env["LOGNAME"] = found->pw_name;
  }
  return env;
}

}  // namespace

absl::StatusOr<std::unique_ptr<LocalBackend>> LocalBackend::Create(LocalOptions options) {
  TP_ASSIGN_OR_RETURN(launch::StorageRoot storage, launch::StorageRoot::Open(options.storage_root));
  options.storage_root = storage.path();
  Machine machine{.host = {},
                  .tool = RankTool(options.rank_binary),
                  .storage = std::move(storage),
                  .reader = options.reader,
                  .watcher = nullptr};
  TP_RETURN_IF_ERROR(machine.tool.Check(absl::Now() + kCheckLimit));
  TP_ASSIGN_OR_RETURN(machine.host, launch::ReadHostIdentity());
  launch::PlanOptions plan{.cgroup_parent = options.cgroups ? FindCgroupParent(options.deployment) : "",
                           .base_env = BaseEnv()};
  return std::unique_ptr<LocalBackend>(new LocalBackend(std::move(options), std::move(machine), std::move(plan)));
}

LocalBackend::LocalBackend(LocalOptions options, Machine machine, launch::PlanOptions plan)
    : options_(std::move(options)), plan_(std::move(plan)), gpus_(options_.tool_path), machine_(std::move(machine)) {}

LocalBackend::~LocalBackend() = default;

Capabilities LocalBackend::capabilities() const {
  return {.several_pools = false, .max_nodes = 0, .unique_names = true, .allocates_cards = false};
}

absl::Status LocalBackend::Validate(const LaunchSpec& spec) const {
  if (!spec.image.empty()) {
    return InvalidArgument("image: the local backend runs processes of this machine, not the image '{}'", spec.image);
  }
  return launch::CheckSpec(spec);
}

std::string LocalBackend::Render(const LaunchSpec& spec) const { return launch::DescribePlan(spec, plan_); }

void LocalBackend::SetWake(std::function<void(const std::string& key)> wake) {
  absl::StatusOr<std::unique_ptr<WakeWatcher>> watcher = WakeWatcher::Start(std::move(wake));
  if (!watcher.ok()) return;  // a hint only: without it changes are seen at the next interval
  watcher_ = *std::move(watcher);
  machine_.watcher = watcher_.get();
}

std::shared_ptr<LocalBackend::Entry> LocalBackend::FindEntry(const std::string& key) {
  const absl::Time now = absl::Now();
  const std::lock_guard lock(mutex_);
  DropUnused(now);
  std::shared_ptr<Entry>& entry = entries_[key];
  if (!entry) entry = std::make_shared<Entry>();
  entry->used_at = now;
  return entry;
}

// Apart from the map's lock: storage that hangs under one attempt holds up no other.
std::shared_ptr<LocalBackend::Entry> LocalBackend::EntryOf(const AttemptTarget& target) {
  std::shared_ptr<Entry> entry = FindEntry(target.key);
  const std::lock_guard lock(entry->mutex);
  if (!entry->attempt || !entry->attempt->IsAbout(target)) {
    entry->attempt.reset();  // the old watch ends before the new one begins
    entry->attempt = std::make_unique<TrackedAttempt>(machine_, target);
  }
  return entry;
}

void LocalBackend::DropUnused(absl::Time now) {
  if (now - dropped_at_ < kDropEvery) return;
  dropped_at_ = now;
  std::erase_if(entries_, [now](const auto& item) {
    return item.second.use_count() == 1 && now - item.second->used_at > kDropAfter;
  });
}

LaunchResult LocalBackend::Launch(const LaunchSpec& spec, absl::Time deadline) {
  if (const absl::Status status = Validate(spec); !status.ok()) {
    return LaunchRejected{LaunchRejected::Kind::kEngine, std::string(Message(status))};
  }
  const absl::Status prepared = launch::PrepareAttempt(spec, options_.storage_root);
  if (!prepared.ok()) return launch::RefusalOf(prepared);
  const std::shared_ptr<Entry> entry = EntryOf(launch::TargetOf(spec));
  {
    const std::lock_guard lock(entry->mutex);
    const absl::StatusOr<Claim> claim = entry->attempt->ReadClaim(spec.nonce);
    if (!claim.ok()) return LaunchRefused{std::string(Message(claim.status()))};
    if (*claim == Claim::kFenced) return LaunchRefused{fmt::format("{} was fenced before its launch", spec.key)};
  }
  const std::string unfit = launch::Preflight(gpus_, spec, std::min(deadline, absl::Now() + kPreflightLimit));
  if (!unfit.empty()) return LaunchRefused{unfit};
  // Another owner's claim is no reason to stop: the ranks find it, leave, and the observation tells.
  ReachFaultPoint(FaultPoint::kBeforeHandOver);
  LaunchResult result = HandOver(spec, deadline);
  ReachFaultPoint(FaultPoint::kAfterHandOver);
  if (std::holds_alternative<LaunchAccepted>(result)) {
    const std::lock_guard lock(entry->mutex);
    entry->attempt->Launched();
  }
  return result;
}

LaunchResult LocalBackend::HandOver(const LaunchSpec& spec, absl::Time deadline) const {
  std::string runners_cgroup;
  if (!plan_.cgroup_parent.empty()) {
    const std::string group = launch::CgroupOfAttempt(plan_.cgroup_parent, spec.key);
    const absl::Status made = MakeCgroup(group);
    if (!made.ok()) return LaunchRefused{std::string(Message(made))};
    runners_cgroup = group + "/runners";
  }
  return machine_.tool.Launch(spec.key, spec.nonce, launch::RenderPlan(spec, plan_), runners_cgroup, deadline);
}

std::vector<Observation> LocalBackend::Observe(const std::vector<AttemptTarget>& targets, absl::Time deadline) {
  std::vector<Observation> observations;
  observations.reserve(targets.size());
  for (const AttemptTarget& target : targets) observations.push_back(ObserveOne(target, deadline));
  return observations;
}

Observation LocalBackend::ObserveOne(const AttemptTarget& target, absl::Time deadline) {
  if (absl::Now() > deadline) return Unknown{"no time was left to look at it"};
  const std::shared_ptr<Entry> entry = EntryOf(target);
  const std::lock_guard lock(entry->mutex);
  return entry->attempt->Observe(target.nonce, deadline);
}

FenceResult LocalBackend::Fence(const AttemptTarget& target, absl::Time) {
  return launch::FenceAttempt(target, options_.storage_root);
}

absl::Status LocalBackend::Stop(const AttemptTarget& target, StopLevel level, absl::Time deadline) {
  const std::shared_ptr<Entry> entry = EntryOf(target);
  const std::lock_guard lock(entry->mutex);
  switch (level) {
    case StopLevel::kWarn: {
      // The file comes second: a job that leaves on seeing it has been signalled (docs/decisions/0004).
      TP_RETURN_IF_ERROR(entry->attempt->Signal(level, deadline));
      const absl::Status announced = launch::AnnouncePause(target.attempt_dir);
      return absl::IsNotFound(announced) ? absl::OkStatus() : announced;
    }
    case StopLevel::kTerm:
      return entry->attempt->Signal(level, deadline);
    case StopLevel::kKill:
      return Kill(target, *entry->attempt, deadline);
  }
  return absl::OkStatus();
}

absl::Status LocalBackend::Kill(const AttemptTarget& target, TrackedAttempt& attempt, absl::Time deadline) const {
  // Closed first: a rank that claims from here on starts nothing.
  const absl::Status closed = launch::CloseFence(target.attempt_dir);
  if (absl::IsNotFound(closed)) return absl::OkStatus();  // never prepared
  TP_RETURN_IF_ERROR(closed);
  return attempt.Signal(StopLevel::kKill, deadline);
}

absl::Status LocalBackend::Remove(const AttemptTarget& target, absl::Time deadline) {
  {
    const std::lock_guard lock(mutex_);
    entries_.erase(target.key);
  }
  if (plan_.cgroup_parent.empty()) return absl::OkStatus();
  return RemoveCgroups(launch::CgroupOfAttempt(plan_.cgroup_parent, target.key), deadline);
}

// Whatever the registry calls them, they are this machine.
absl::StatusOr<std::vector<CardSight>> LocalBackend::LookAtCards(const std::vector<NodeCards>& nodes,
                                                                 absl::Time deadline) {
  return launch::SightsOf(gpus_, nodes, deadline);
}

absl::StatusOr<std::vector<InventoryItem>> LocalBackend::Inventory(absl::Time deadline) {
  return TakeInventory(machine_, options_.deployment, deadline);
}

}  // namespace tp::local
