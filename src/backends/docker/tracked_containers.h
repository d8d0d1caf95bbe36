// One attempt as an engine and the storage show it together. Not thread-safe; calls about one attempt come one at a
// time.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "backends/docker/container.h"
#include "launch/attempt_reader.h"
#include "launch/storage_root.h"
#include "tp/attempt.h"
#include "tp/observation.h"

namespace tp::docker {

// The storage as all attempts share it. Outlives them.
struct SharedPlace {
  launch::StorageRoot storage;
  launch::ReaderOptions reader;
  std::function<absl::Duration()> since_boot;
};

// How far this process has come with an attempt's launch.
struct LaunchProgress {
  bool under_way = false;  // or was so when the containers were listed
  bool pulling = false;
  std::string words;                         // while it is pulling
  std::optional<std::string> image_failure;  // it cannot be got
};

using RankKey = std::pair<int, int>;  // pool, rank

class TrackedContainers {
 public:
  TrackedContainers(const SharedPlace& place, const AttemptTarget& target);

  bool IsAbout(const AttemptTarget& target) const;

  // `seen`: the attempt's containers, as the engine listed them just now. `inspect` asks about one that has ended;
  // nothing: it did not answer. `in_outage` says whether the engine was away then.
  Observation Observe(const std::string& nonce, const std::map<RankKey, Container>& seen, const LaunchProgress& launch,
                      const std::function<std::optional<Inspected>(const std::string& id)>& inspect,
                      const std::function<bool(absl::Time at)>& in_outage);

  // The claim on storage now.
  absl::StatusOr<Claim> ReadClaim(const std::string& nonce);

  // Ranks that have claimed and not ended.
  absl::StatusOr<std::vector<RankKey>> RanksToSignal();

 private:
  struct Looks {
    // Nobody is launching it, no container of it runs, and its claim and heartbeat stand still.
    std::optional<absl::Duration> idle_since;
    bool claimed = false;
    int64_t beats = 0;
    std::optional<Inspected> ended;
  };

  Observation Unclaimed(const std::string& nonce, const std::map<RankKey, Container>& seen,
                        const LaunchProgress& launch);
  Present Owned(Claim claim, const std::map<RankKey, Container>& seen, const LaunchProgress& launch) const;
  Tree TreeOf(size_t index, const std::map<RankKey, Container>& seen, const LaunchProgress& launch) const;
  void LookForIdle(const std::map<RankKey, Container>& seen, const LaunchProgress& launch);
  bool IdleFor(size_t index, absl::Duration length) const;
  bool IsOver(size_t index) const;
  void CloseFenceOfCutShort(const LaunchProgress& progress) const;
  bool AnyWithoutRecord(const std::map<RankKey, Container>& seen) const;
  bool TellEnd(Present& present, const std::map<RankKey, Container>& seen,
               const std::function<std::optional<Inspected>(const std::string& id)>& inspect,
               const std::function<bool(absl::Time at)>& in_outage);
  std::vector<RankObservation> Ranks() const;

  const SharedPlace& place_;
  const AttemptTarget target_;
  launch::AttemptReader reader_;
  const launch::AttemptFiles* files_ = nullptr;  // of the last read
  std::vector<Looks> looks_;                     // as files_->ranks
};

}  // namespace tp::docker
