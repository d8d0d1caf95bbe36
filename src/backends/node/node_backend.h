// Jobs on up to eight machines reached by ssh, one rank on each. Nothing of tpd's stays there but tp-rank: it is
// delivered, started with the ranks, and leaves its records on storage that all machines mount at the same path, or on
// each machine's own, from where they are copied (copied/copied_attempts.h).
// What a machine that does not answer runs is unknown, and never slows the others.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "backends/node/attempt_watch.h"
#include "backends/node/card_look.h"
#include "backends/node/copied/copied_attempts.h"
#include "backends/node/copied/copier.h"
#include "backends/node/host_links.h"
#include "backends/node/host_script.h"
#include "backends/node/remote_shell.h"
#include "backends/node/ssh_shell.h"
#include "launch/attempt_reader.h"
#include "tp/backend.h"

namespace tp::node {

struct NodeOptions {
  std::string deployment;
  std::string storage_root;    // absolute; of one deployment alone, mounted everywhere at this path
  std::string rank_binary;     // tp-rank, for the machines' architecture
  std::string data_directory;  // of tpd alone; the sockets of open connections go beneath it
  SshOptions ssh;
  absl::Duration connect_timeout = absl::Seconds(5);
  launch::ReaderOptions reader;
  bool copied = false;  // the machines' storage_root is their own: jobs' files are copied there and back
};

class NodeBackend final : public Backend {
 public:
  // Proves storage and runner; needs no machine to answer.
  static absl::StatusOr<std::unique_ptr<NodeBackend>> Create(NodeOptions options);
  // The same over another shell and copier.
  static absl::StatusOr<std::unique_ptr<NodeBackend>> CreateOver(NodeOptions options,
                                                                 std::unique_ptr<RemoteShell> shell,
                                                                 std::unique_ptr<Copier> copier);
  ~NodeBackend() override;

  Capabilities capabilities() const override;
  absl::Status Validate(const LaunchSpec& spec) const override;
  std::string Render(const LaunchSpec& spec) const override;
  LaunchResult Launch(const LaunchSpec& spec, absl::Time deadline) override;
  std::vector<Observation> Observe(const std::vector<AttemptTarget>& targets, absl::Time deadline) override;
  FenceResult Fence(const AttemptTarget& target, absl::Time deadline) override;
  // UNAVAILABLE names the machine that could not be told; the others were.
  absl::Status Stop(const AttemptTarget& target, StopLevel level, absl::Time deadline) override;
  absl::Status Remove(const AttemptTarget& target, absl::Time deadline) override;
  // Of the machines given to SetNodes; where none were, of all that were ever asked about.
  absl::StatusOr<std::vector<InventoryItem>> Inventory(absl::Time deadline) override;
  void SetWake(std::function<void(const std::string& key)> wake) override;

  void SetNodes(const std::vector<RankHost>& nodes) override;
  void ProbeNodes(absl::Time deadline) override;
  std::vector<NodeSight> Nodes() const override;
  absl::StatusOr<std::vector<CardSight>> LookAtCards(const std::vector<NodeCards>& nodes, absl::Time deadline) override;

 private:
  struct Entry {
    std::mutex mutex;  // calls about one attempt come one at a time; this makes a breach harmless
    std::unique_ptr<AttemptWatch> watch;
    absl::Time used_at;
  };
  struct Round;  // one Observe call

  NodeBackend(NodeOptions options, SharedStorage storage, RankBinary binary, std::unique_ptr<RemoteShell> shell,
              std::unique_ptr<Copier> copier);
  void Wake(const std::string& key);
  std::shared_ptr<Entry> EntryOf(const AttemptTarget& target);
  void DropUnused(absl::Time now);
  std::vector<std::shared_ptr<HostLink>> Listed() const;
  void WakeRanksOn(const RankHost& host);
  absl::Status Signal(const AttemptTarget& target, StopLevel level, absl::Time deadline);

  const NodeOptions options_;
  const SharedStorage storage_;
  const RankBinary binary_;
  const std::unique_ptr<RemoteShell> shell_;

  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Entry>> entries_;  // by key; those not in use are dropped
  absl::Time dropped_at_ = absl::InfinitePast();
  std::vector<RankHost> hosts_;
  std::function<void(const std::string& key)> wake_;

  std::unique_ptr<CopiedAttempts> copied_;  // stopped while links are there; links tell it of hosts to their end
  mutable HostLinks links_;                 // keeps itself in order
  CardLooks card_looks_;
  Crew looks_;  // ends first: a look that nobody waits for uses all of the above
};

}  // namespace tp::node
