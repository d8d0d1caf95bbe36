// Attempts on machines that share no storage with tpd (docs/decisions/0073): what comes before, beside and after what
// the node backend does for all attempts. Files are copied behind the calls, by threads of this object; a call about
// one attempt never waits for a copy. Thread-safe.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "backends/node/attempt_watch.h"
#include "backends/node/copied/attempt_mirror.h"
#include "backends/node/copied/copier.h"
#include "backends/node/copied/copy_job.h"
#include "backends/node/copied/copy_site.h"
#include "backends/node/copied/handover.h"
#include "backends/node/copied/owed.h"
#include "backends/node/crew.h"
#include "backends/node/host_links.h"
#include "tp/attempt.h"
#include "tp/launch.h"
#include "tp/observation.h"

namespace tp::node {

struct CopiedOptions {
  bool by_default = false;  // attempts that begin now are of this kind; those that began before are what they were
  std::string deployment;
  std::string storage_root;
  std::string data_directory;
};

class CopiedAttempts {
 public:
  // All outlive its work, which Stop ends. `wake`: something has changed at the attempt with that key.
  CopiedAttempts(CopiedOptions options, const SharedStorage& storage, HostLinks& links, const RankBinary& binary,
                 std::unique_ptr<Copier> copier, std::function<void(const std::string& key)> wake);

  // Calls all copies off and waits for them: cancel the shell first. Nothing begins any more.
  void Stop();

  bool by_default() const { return options_.by_default; }

  // The attempt directory is prepared. Accepted as soon as the copy has begun.
  LaunchResult Launch(const LaunchSpec& spec);

  // What is to be known of an attempt before its machines are asked.
  struct Sight {
    bool copied = false;
    std::optional<Observation> known;       // there is nothing to ask
    std::shared_ptr<AttemptMirror> mirror;  // what they are to be asked besides
    // Its machines were being told to start it, so that what they answer may be of before they were.
    bool launch_under_way = false;
  };
  Sight Before(const AttemptTarget& target);
  // What the judgement becomes: an attempt is over once its files are here. `sight`: as it was before its machines
  // were asked.
  Observation After(const AttemptTarget& target, const Sight& sight, Observation seen);

  // Nothing: the attempt is not of this kind.
  std::optional<FenceResult> Fence(const AttemptTarget& target, absl::Time deadline);
  std::optional<absl::Status> Stop(const AttemptTarget& target, StopLevel level, absl::Time deadline);
  // Takes its files off the machines.
  absl::Status Remove(const AttemptTarget& target, absl::Time deadline);

  // It answers again.
  void SettleOn(const RankHost& host);

 private:
  // One attempt.
  struct Item {
    std::mutex mutex;
    std::shared_ptr<CopyJob> launch;
    std::shared_ptr<CopyJob> copy_out;
    std::shared_ptr<AttemptMirror> mirror;
    std::optional<std::set<std::string>> copied_out;  // the nodes whose output is lost
    std::set<std::string> owed_to;
    absl::Time used_at = absl::InfinitePast();

    bool under_way() const;
  };

  std::shared_ptr<Item> ItemOf(const std::string& key);
  CopySite Site();
  // Nothing: not of this kind. Not handed over yet: no nonce and no orders, `made` false.
  struct Kind {
    bool made = false;
    Handover handover;
  };
  absl::StatusOr<std::optional<Kind>> KindOf(const AttemptTarget& target) const;
  // With the item's mutex held.
  absl::Status BeginLaunch(const LaunchSpec& spec, Item& item);
  void CopyThenLaunch(const LaunchSpec& spec, const std::shared_ptr<CopyJob>& job);
  // Of a tpd that ended before it was handed over. False: there is none, or it cannot begin.
  bool GoOnWithLaunch(const AttemptTarget& target, Item& item);
  void BeginCopyOut(const AttemptTarget& target, Item& item);
  Observation NotHandedOver(const AttemptTarget& target, Item& item, bool launch_was_under_way, bool to_nobody);
  Observation Freed(const AttemptTarget& target, Item& item, Present present);
  void Owe(const AttemptTarget& target, Item& item);
  FenceResult FenceHandedOver(const AttemptTarget& target, const Handover& handover, absl::Time deadline);
  std::optional<FenceResult> LookForClaims(const AttemptTarget& target, const Handover& handover,
                                           const std::vector<HostAnswer>& answers);
  absl::Status FenceHosts(const AttemptTarget& target, absl::Time deadline);
  std::vector<HostAnswer> AskAll(const AttemptTarget& target, const std::function<std::string(size_t rank)>& program,
                                 absl::Time deadline);
  absl::Status CallOffUnsent(const AttemptTarget& target, Item& item) const;
  absl::Status Signal(const AttemptTarget& target, StopLevel level, absl::Time deadline);

  const CopiedOptions options_;
  const SharedStorage& storage_;
  HostLinks& links_;
  const RankBinary& binary_;
  const std::unique_ptr<Copier> copier_;
  const std::function<void(const std::string& key)> wake_;
  const std::string pending_;  // directory of pending launches
  Owed owed_;
  CopySlots slots_;

  std::mutex mutex_;
  bool stopping_ = false;
  std::map<std::string, std::shared_ptr<Item>> items_;  // by key
  absl::Time dropped_at_ = absl::InfinitePast();
  std::unique_ptr<Crew> copies_ = std::make_unique<Crew>();
};

}  // namespace tp::node
