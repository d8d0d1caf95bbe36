#include "sim/card_watch.h"

#include <utility>

#include <fmt/format.h>

#include "sim/units.h"

namespace tp::sim {
namespace {

constexpr int64_t kLookEvery = 10 * kSecond;
constexpr int64_t kSoon = 300 * kMillisecond;
// Two of them in a row, and what the loop takes, are within what an end waits for.
constexpr Span kLookTakes = {10 * kMillisecond, 4 * kSecond};
constexpr Span kJobNotices = {kMillisecond, 20 * kSecond};
// Cards take turns at computing nothing.
constexpr int64_t kIdlePhase = 2 * kMinute;

std::string NodeName(int node) { return fmt::format("gpu-{}", node); }

}  // namespace

CardWatch::CardWatch(const Options& options, Timeline& timeline, Rng& rng, Journal& journal, World& world)
    : options_(options), timeline_(timeline), rng_(rng), journal_(journal), world_(world) {}

void CardWatch::StartWear() {
  if (options_.cards.between_breaks.high_us > 0) WearLater();
}

void CardWatch::WearLater() {
  timeline_.In(rng_.Draw(options_.cards.between_breaks), [this] {
    if (options_.cards.between_breaks.high_us == 0) return;
    BreakOne();
    WearLater();
  });
}

// Cards that work break more often.
core::NodePart CardWatch::AnyCard() {
  const std::vector<core::NodePart> busy = world_.BusyCards();
  if (!busy.empty() && rng_.Chance(700)) return rng_.Pick(busy);
  return {.node = NodeName(static_cast<int>(rng_.Between(0, options_.nodes - 1))),
          .card = static_cast<int>(rng_.Between(0, options_.cards_per_node - 1))};
}

void CardWatch::BreakOne() {
  const core::NodePart part = AnyCard();
  if (!world_.BreakCard(part)) return;
  FailJobsOn(part);
  ears_.broke(part);
}

// Most jobs that lose a card end by it, some go on.
void CardWatch::FailJobsOn(const core::NodePart& part) {
  const auto code = static_cast<int>(rng_.Between(1, 255));
  if (!rng_.Chance(options_.cards.fails)) return;
  timeline_.In(rng_.Draw(kJobNotices), [this, part, code] { world_.FailRanksOn(part, code); });
}

void CardWatch::Started() {
  ++life_;
  told_.clear();
  looking_ = false;
  again_ = false;
  Look();
  LookLater(kLookEvery);
}

void CardWatch::LookLater(int64_t after_us) {
  timeline_.In(after_us, [this, life = life_] {
    if (life != life_) return;
    Look();
    LookLater(kLookEvery);
  });
}

void CardWatch::LookSoon() {
  timeline_.In(kSoon, [this, life = life_] {
    if (life == life_) Look();
  });
}

void CardWatch::Look() {
  if (looking_) {
    again_ = true;
    return;
  }
  looking_ = true;
  loop::CardsSeen seen{.backend = "kubernetes_job", .began = timeline_.wall(), .cards = Cards(), .faults = {}};
  timeline_.In(rng_.Draw(kLookTakes), [this, life = life_, seen = std::move(seen)]() mutable {
    if (life != life_) return;
    looking_ = false;
    if (rng_.Chance(options_.cards.look_fails)) {
      world_.ExcuseLooks();
    } else {
      seen.faults = core::NewFaults(seen.cards, told_);
      for (const core::CardFault& fault : seen.faults) {
        journal_.Note("a look finds card {} of {} broken", fault.card, fault.node);
      }
      ears_.seen(std::move(seen));
    }
    if (std::exchange(again_, false)) Look();
  });
}

std::vector<CardSight> CardWatch::Cards() const {
  std::vector<CardSight> cards;
  for (int node = 0; node < options_.nodes; ++node) {
    for (int card = 0; card < options_.cards_per_node; ++card) {
      const core::NodePart part{.node = NodeName(node), .card = card};
      const bool idle = (timeline_.now_us() / kIdlePhase + card) % 3 == 0;
      cards.push_back(
          {.node = part.node, .card = card, .broken = world_.WhyBroken(part), .utilization_percent = idle ? 0 : 90});
    }
  }
  return cards;
}

}  // namespace tp::sim
