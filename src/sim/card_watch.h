// Cards that break, and the looks at them that tpd takes: one at each start, one every ten seconds, and those that the
// loop asks for. A look sees what was so when it began.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "core/card_health.h"
#include "loop/loop.h"
#include "sim/journal.h"
#include "sim/options.h"
#include "sim/rng.h"
#include "sim/timeline.h"
#include "sim/world.h"

namespace tp::sim {

class CardWatch {
 public:
  struct Ears {
    std::function<void(loop::CardsSeen)> seen;         // tpd is up
    std::function<void(const core::NodePart&)> broke;  // somebody will see to it
  };

  // All outlive the watch.
  CardWatch(const Options& options, Timeline& timeline, Rng& rng, Journal& journal, World& world);
  void Connect(Ears ears) { ears_ = std::move(ears); }

  void StartWear();
  // tpd is there; what an earlier one was about to see nobody sees.
  void Started();
  void Died() { ++life_; }
  void LookSoon();

 private:
  void WearLater();
  void BreakOne();
  core::NodePart AnyCard();
  void FailJobsOn(const core::NodePart& part);
  void Look();
  void LookLater(int64_t after_us);
  std::vector<CardSight> Cards() const;

  const Options& options_;
  Timeline& timeline_;
  Rng& rng_;
  Journal& journal_;
  World& world_;
  Ears ears_;
  core::KnownFaults told_;
  int64_t life_ = 0;
  bool looking_ = false;
  bool again_ = false;
};

}  // namespace tp::sim
