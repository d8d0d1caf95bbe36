// The embedded default: jobs are processes of this machine, however many nodes the registry divides it
// into. They outlive tpd: own sessions, own cgroups where the machine has them, records on storage.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "backends/local/tracked_attempt.h"
#include "backends/local/wake_watcher.h"
#include "launch/attempt_dir.h"
#include "launch/attempt_reader.h"
#include "launch/gpu_tool.h"
#include "launch/rank_plan.h"
#include "tp/backend.h"

namespace tp::local {

struct LocalOptions {
  std::string deployment;
  std::string storage_root;                   // absolute; of one deployment alone
  std::string rank_binary;                    // tp-rank
  std::string tool_path = launch::kToolPath;  // where nvidia-smi is looked for
  bool cgroups = true;                        // where this machine has cgroup v2 and lets tpd write
  launch::ReaderOptions reader;
};

class LocalBackend final : public Backend {
 public:
  // Proves storage and runner first; the status says what is wrong with them.
  static absl::StatusOr<std::unique_ptr<LocalBackend>> Create(LocalOptions options);
  ~LocalBackend() override;

  Capabilities capabilities() const override;
  absl::Status Validate(const LaunchSpec& spec) const override;
  std::string Render(const LaunchSpec& spec) const override;
  LaunchResult Launch(const LaunchSpec& spec, absl::Time deadline) override;
  std::vector<Observation> Observe(const std::vector<AttemptTarget>& targets, absl::Time deadline) override;
  FenceResult Fence(const AttemptTarget& target, absl::Time deadline) override;
  absl::Status Stop(const AttemptTarget& target, StopLevel level, absl::Time deadline) override;
  absl::Status Remove(const AttemptTarget& target, absl::Time deadline) override;
  absl::StatusOr<std::vector<InventoryItem>> Inventory(absl::Time deadline) override;
  absl::StatusOr<std::vector<CardSight>> LookAtCards(const std::vector<NodeCards>& nodes, absl::Time deadline) override;
  void SetWake(std::function<void(const std::string& key)> wake) override;

  // Empty: jobs live without cgroups.
  const std::string& cgroup_parent() const { return plan_.cgroup_parent; }

 private:
  struct Entry {
    std::mutex mutex;  // calls about one attempt come one at a time; this makes a breach harmless
    std::unique_ptr<TrackedAttempt> attempt;
    absl::Time used_at;
  };

  LocalBackend(LocalOptions options, Machine machine, launch::PlanOptions plan);
  std::shared_ptr<Entry> FindEntry(const std::string& key);
  std::shared_ptr<Entry> EntryOf(const AttemptTarget& target);
  void DropUnused(absl::Time now);
  Observation ObserveOne(const AttemptTarget& target, absl::Time deadline);
  LaunchResult HandOver(const LaunchSpec& spec, absl::Time deadline) const;
  absl::Status Kill(const AttemptTarget& target, TrackedAttempt& attempt, absl::Time deadline) const;

  const LocalOptions options_;
  const launch::PlanOptions plan_;
  const launch::GpuTool gpus_;
  std::unique_ptr<WakeWatcher> watcher_;
  Machine machine_;

  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Entry>> entries_;  // by key; those not in use are dropped
  absl::Time dropped_at_ = absl::InfinitePast();
};

}  // namespace tp::local
