// One attempt as this backend sees it: its records on the shared storage, and what the machines of its ranks say
// about their processes. An observation has two halves, so that many attempts ask a machine with one call: what must
// be asked, then the judgement. Not thread-safe; calls about one attempt come one at a time.
//
// The judgement is that of the local backend (local/tracked_attempt.h). It is written anew because there every
// question is a system call that is answered at once, and here the answer may be missing.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "backends/node/host_link.h"
#include "backends/node/host_script.h"
#include "launch/attempt_reader.h"
#include "launch/storage_root.h"
#include "tp/attempt.h"
#include "tp/observation.h"

namespace tp::node {

// The storage as all attempts of a backend share it. Outlives them.
struct SharedStorage {
  launch::StorageRoot root;
  absl::Duration visibility;  // until what another machine wrote is seen here
  launch::ReaderOptions reader;
};

class AttemptWatch {
 public:
  AttemptWatch(const SharedStorage& storage, const AttemptTarget& target);

  bool IsAbout(const AttemptTarget& target) const;
  // What it reads is tpd's own copy of what is on the machines: there is nothing to wait for until it is seen, and its
  // fence says closed only once those of all machines do.
  void ReadsCopies() { copies_ = true; }
  const AttemptTarget& target() const { return target_; }

  // A question to the machine of a rank; `marks`: also which launches are under way there.
  struct Question {
    size_t rank = 0;  // index in (pool, rank) order
    RankHost host;
    std::optional<RankQuestion> runner;  // its id is the caller's to set
    bool marks = false;
  };
  // Reads the records. No question: Judge needs no answer.
  absl::StatusOr<std::vector<Question>> Begin();

  // What a machine said, by the rank whose question it answers.
  struct Answer {
    std::optional<HostSilence> silence;
    HostFacts facts;
    std::optional<int> code;  // of the runner's question
    const std::vector<Mark>* marks = nullptr;
  };
  // After Begin. Reads the records again where the answers make that necessary.
  Observation Judge(const std::string& nonce, const std::map<size_t, Answer>& answers);

  // The claim on storage now.
  absl::StatusOr<Claim> ReadClaim(const std::string& nonce);

  // The ranks that have claimed and not ended, for orders.
  absl::StatusOr<std::vector<Question>> RanksToSignal();
  // Whether the rank's machine has been restarted since: nothing of it is left to signal.
  bool RanBeforeReboot(size_t rank, const HostFacts& facts) const;

 private:
  struct Seen {
    bool gone = false;  // verified: its whole tree is, and nothing of the rank can start
    // Gone without a record, which may still be on its way to this machine: since when, by the monotonic clock.
    std::optional<absl::Duration> record_awaited_since;
    std::string reason;              // of this observation; empty: nothing to say
    bool started_elsewhere = false;  // of this observation: its process cannot be told
    // Of a rank without a claim: the machine when it was first asked. A launch that was on its way by then is
    // stale after kLaunchValid of the machine's own time.
    std::string first_boot_id;
    double first_uptime_s = 0;
  };

  std::optional<std::string> FirstSilence(const std::map<size_t, Answer>& answers) const;
  bool LaunchIsUnderWay(const std::map<size_t, Answer>& answers) const;
  bool CarriesLaunch(const Answer& answer) const;
  Observation JudgeUnclaimed(const std::string& nonce, const std::map<size_t, Answer>& answers);
  Observation JudgeFenced() const;
  Observation JudgeOwned(const std::string& nonce, const std::map<size_t, Answer>& answers);
  void LeaveToItself(size_t rank);
  bool CannotStart(size_t rank, const Answer& answer);
  bool TreeIsGone(size_t rank, const Answer& answer);
  absl::Duration Visibility() const { return copies_ ? absl::ZeroDuration() : storage_.visibility; }
  bool FenceHoldsForAll() const;
  std::vector<RankObservation> Ranks() const;
  Tree TreeOf(size_t rank) const;
  bool AwaitsRecord(size_t rank) const;
  bool AnyAwaitsRecord() const;

  const SharedStorage& storage_;
  const AttemptTarget target_;
  bool copies_ = false;
  launch::AttemptReader reader_;
  const launch::AttemptFiles* files_ = nullptr;    // of the last read
  std::vector<Seen> seen_;                         // as files_->ranks
  std::optional<absl::Duration> fence_closed_at_;  // by the monotonic clock, when it was first seen
};

// How long after its first half the second half of a launch may begin anything, by the machine's own clock.
inline constexpr absl::Duration kLaunchValid = absl::Seconds(60);

}  // namespace tp::node
