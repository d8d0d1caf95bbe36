// The loop's way out to the simulated world: calls of one attempt one after the other, each taking
// virtual time, answers that are lost, late or doubled, observations at an interval. The contract is
// that of loop::EffectSink.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <variant>

#include "loop/effects.h"
#include "loop/loop.h"
#include "sim/journal.h"
#include "sim/options.h"
#include "sim/rng.h"
#include "sim/timeline.h"
#include "sim/world.h"

namespace tp::sim {

class SimSink : public loop::EffectSink {
 public:
  struct Ears {
    std::function<void(loop::EffectAnswered)> answered;
    std::function<void(loop::AttemptObserved)> observed;
  };
  using LaunchCheck = std::function<void(const AttemptTarget&, const LaunchSpec&)>;

  SimSink(const Options& options, Timeline& timeline, Rng& rng, Journal& journal, World& world);
  void Connect(Ears ears) { ears_ = std::move(ears); }
  // Called with every launch that the loop asks for.
  void OnLaunch(LaunchCheck check) { check_ = std::move(check); }
  void OnLookWanted(std::function<void(const std::string& backend)> wanted) { look_wanted_ = std::move(wanted); }

  // tpd dies: what was not yet sent never is, what was sent may still take effect, nobody hears of it.
  void Die();

  void Launch(int64_t outbox_id, const std::string& backend, const LaunchSpec& spec,
              const AttemptTarget& target) override;
  void Fence(int64_t outbox_id, const std::string& backend, const AttemptTarget& target) override;
  void Signal(int64_t outbox_id, const std::string& backend, const AttemptTarget& target, StopLevel level) override;
  void Remove(int64_t outbox_id, const std::string& backend, const AttemptTarget& target) override;
  void Track(const std::string& backend, const AttemptTarget& target) override;
  void Untrack(const std::string& key) override;
  void Look(const std::string& backend, const AttemptTarget& target) override;
  void LookAtCards(const std::string& backend) override { look_wanted_(backend); }

  // Something changed at the attempt: look soon.
  void Wake(const std::string& key);

 private:
  enum class Kind : uint8_t { kLaunch, kFence, kSignal, kRemove, kObserve, kLook };
  struct Call {
    Kind kind = Kind::kObserve;
    int64_t outbox_id = 0;
    AttemptTarget target;
    StopLevel level = StopLevel::kTerm;
    LaunchSpec spec;
  };
  struct Line {
    std::deque<Call> waiting;
    bool busy = false;
  };
  struct Tracked {
    AttemptTarget target;
    bool asked = false;  // an observation waits in the line
  };
  using Result = std::variant<loop::EffectResult, Observation>;

  void Enqueue(Call call);
  void Next(const std::string& key);
  Result CarryOut(const Call& call);
  loop::EffectResult CarryOutLaunch(const Call& call);
  static LaunchResult Rejected(AttemptTruth& attempt, LaunchRejected::Kind kind);
  LaunchResult Indeterminate(AttemptTruth& attempt, const std::string& nonce);
  LaunchResult Accepted(AttemptTruth& attempt, const std::string& nonce);
  void CreateLater(AttemptTruth& attempt, const std::string& nonce, int64_t after_us);
  void CreateNow(AttemptTruth& attempt, const std::string& nonce, int64_t listed_after_us);
  FenceResult CarryOutFence(const Call& call);
  absl::Status CarryOutOrFail(const std::function<void()>& effect);
  void Deliver(const Call& call, const Result& result);
  void DeliverObservation(const std::string& key, const Observation& observation);
  void Poll(const std::string& key);
  void AskFor(const std::string& key);

  const Options& options_;
  Timeline& timeline_;
  Rng& rng_;
  Journal& journal_;
  World& world_;
  Ears ears_;
  LaunchCheck check_ = [](const AttemptTarget&, const LaunchSpec&) {};
  std::function<void(const std::string&)> look_wanted_ = [](const std::string&) {};
  int64_t life_ = 0;  // of tpd; what belongs to an earlier one is nobody's
  std::map<std::string, Line> lines_;
  std::map<std::string, Tracked> tracked_;
};

}  // namespace tp::sim
