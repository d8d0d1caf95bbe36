// Jobs as containers of one engine, one a rank, over storage that tpd and the containers see at the same path. The
// rank's runner is the container's first process and leaves its records on the storage; the engine says which
// containers there are. What an engine that does not answer runs is unknown.
//
// A container is created once under the attempt's key and started once: it is never started again, whatever became
// of it, because an engine would run the job a second time.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "backends/docker/container_request.h"
#include "backends/docker/curl_transport.h"
#include "backends/docker/engine.h"
#include "backends/docker/tracked_containers.h"
#include "base/since_boot.h"
#include "launch/attempt_reader.h"
#include "launch/gpu_tool.h"
#include "tp/backend.h"

namespace tp::docker {

struct DockerOptions {
  std::string deployment;
  std::string storage_root;  // absolute; of one deployment alone
  std::string rank_binary;   // tp-rank, for the engine's architecture
  EngineAddress address;
  std::string device_directory = "/dev";      // of the engine's machine
  std::string tool_path = launch::kToolPath;  // where nvidia-smi is looked for, where the engine is on this machine
  launch::ReaderOptions reader;
  std::function<absl::Duration()> since_boot = SinceBoot;
};

class DockerBackend final : public Backend {
 public:
  // Proves storage and runner, and lays the runner down where containers see it; the engine may be away.
  static absl::StatusOr<std::unique_ptr<DockerBackend>> Create(DockerOptions options);
  // The same over another transport.
  static absl::StatusOr<std::unique_ptr<DockerBackend>> CreateOver(DockerOptions options,
                                                                   std::unique_ptr<EngineTransport> transport);
  ~DockerBackend() override;

  Capabilities capabilities() const override;
  absl::Status Validate(const LaunchSpec& spec) const override;
  std::string Render(const LaunchSpec& spec) const override;
  LaunchResult Launch(const LaunchSpec& spec, absl::Time deadline) override;
  std::vector<Observation> Observe(const std::vector<AttemptTarget>& targets, absl::Time deadline) override;
  FenceResult Fence(const AttemptTarget& target, absl::Time deadline) override;
  absl::Status Stop(const AttemptTarget& target, StopLevel level, absl::Time deadline) override;
  absl::Status Remove(const AttemptTarget& target, absl::Time deadline) override;
  absl::StatusOr<std::vector<InventoryItem>> Inventory(absl::Time deadline) override;
  absl::StatusOr<std::vector<ForeignCard>> ForeignCards(absl::Time deadline) override;
  // Nothing of an engine on another machine.
  absl::StatusOr<std::vector<CardSight>> LookAtCards(const std::vector<NodeCards>& nodes, absl::Time deadline) override;
  void SetWake(std::function<void(const std::string& key)> wake) override;

 private:
  // One attempt. `mutex` guards what its calls and a pull share.
  struct Entry {
    std::mutex mutex;
    std::unique_ptr<TrackedContainers> containers;
    LaunchProgress launch;
    absl::Duration launched_at = -absl::InfiniteDuration();  // when this process was done with it
    bool called_off = false;                                 // nothing more is created or started
    std::optional<absl::Duration> killed_at;
    absl::Duration used_at;
  };

  struct Worker {
    std::shared_ptr<std::atomic<bool>> ended;
    std::thread thread;
  };

  DockerBackend(DockerOptions options, launch::StorageRoot storage, std::string rank_in_storage,
                std::unique_ptr<EngineTransport> transport);
  std::shared_ptr<Entry> FindEntry(const std::string& key);
  std::shared_ptr<Entry> EntryOf(const AttemptTarget& target);
  absl::StatusOr<Site> SiteNow(const LaunchSpec& spec, absl::Time deadline);
  LaunchResult LaunchContainers(const LaunchSpec& spec, const ExecutorConfig& config, Entry& entry,
                                absl::Time deadline);
  std::optional<LaunchResult> CreateAll(const LaunchSpec& spec, const ExecutorConfig& config, const Site& site,
                                        std::vector<std::string>& to_start, absl::Time deadline);
  LaunchResult StartAll(const LaunchSpec& spec, Entry& entry, const std::vector<std::string>& to_start,
                        absl::Time deadline);
  LaunchResult CallOff(const LaunchSpec& spec, LaunchResult result, absl::Time deadline);
  void PullThenLaunch(const LaunchSpec& spec, const ExecutorConfig& config, const std::shared_ptr<Entry>& entry);
  absl::Status SignalRanks(const AttemptTarget& target, Entry& entry, StopLevel level, absl::Time deadline);
  absl::Status KillContainers(const std::string& key, absl::Time deadline);
  absl::Status PullUntil(const std::string& image, absl::Time deadline, Entry& entry);
  absl::Status SignalInside(const std::string& name, const std::vector<std::string>& argv, absl::Time deadline);
  absl::StatusOr<bool> IsSoonOver(const std::string& name, absl::Time deadline);
  absl::Status RemoveContainers(const std::vector<std::string>& labels, absl::Time deadline);
  absl::Status RemoveNetworks(const std::string& key, absl::Time deadline);
  void NoteAnswer(bool answered, absl::Time now);
  bool InOutage(absl::Time at) const;
  void FollowEvents();
  void StartThread(std::function<void()> work);

  const DockerOptions options_;
  const std::string rank_in_storage_;
  const std::string user_;  // UID:GID
  const SharedPlace place_;
  const launch::GpuTool gpus_;
  const std::unique_ptr<EngineTransport> transport_;
  Engine engine_;

  mutable std::mutex mutex_;
  std::condition_variable stopping_changed_;
  bool stopping_ = false;
  std::map<std::string, std::shared_ptr<Entry>> entries_;  // by key; those not in use are dropped
  absl::Duration dropped_at_ = -absl::InfiniteDuration();
  // When the engine was away, as far as it was noticed; ends what it did then is no proof of anything.
  absl::Time first_answer_ = absl::InfiniteFuture();
  absl::Time last_answer_ = absl::InfinitePast();
  bool away_ = false;
  std::vector<std::pair<absl::Time, absl::Time>> outages_;
  std::function<void(const std::string& key)> wake_;
  std::vector<Worker> threads_;
};

}  // namespace tp::docker
