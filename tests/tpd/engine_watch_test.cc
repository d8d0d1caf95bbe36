#include "tpd/engine_watch.h"

#include <atomic>
#include <mutex>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backends/driver/missing_backend.h"

namespace tp::tpd {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

core::Registry DockerRegistry(bool virtual_cards = false) {
  core::Registry registry;
  core::Executor executor;
  executor.name = "gpu/default";
  executor.backend = "docker";
  registry.executors[executor.name] = executor;
  core::Series series;
  series.name = "a100";
  series.gpus_per_node = 4;
  series.virtual_cards = virtual_cards;
  series.executor = executor.name;
  series.nodes = {{"gpu-1", "127.0.0.1"}};
  registry.series[series.name] = series;
  return registry;
}

std::vector<int> CardsOf(const std::vector<core::CardHeldElsewhere>& held) {
  std::vector<int> cards;
  for (const core::CardHeldElsewhere& one : held) cards.push_back(one.part.card);
  return cards;
}

TEST(HeldElsewhere, NamesWhoHoldsThem) {
  const auto held =
      HeldElsewhere(DockerRegistry(), "docker", {{.card = 2, .holder = "container trainer"}, {9, "x"}}, {});
  EXPECT_THAT(held, ElementsAre(core::CardHeldElsewhere{{.node = "gpu-1", .card = 2}, "container trainer"}));
  EXPECT_THAT(HeldElsewhere(DockerRegistry(), "local", {{.card = 2, .holder = "x"}}, {}), IsEmpty());
  EXPECT_THAT(HeldElsewhere(DockerRegistry(true), "docker", {{.card = 2, .holder = "x"}}, {}), IsEmpty());
}

TEST(HeldElsewhere, TheSharedPoolLeavesTheOthersToOthers) {
  using Kind = config::DockerCards::Kind;
  EXPECT_THAT(CardsOf(HeldElsewhere(DockerRegistry(), "docker", {}, {Kind::kNone, {}})), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(CardsOf(HeldElsewhere(DockerRegistry(), "docker", {}, {Kind::kList, {0, 3}})), ElementsAre(1, 2));
  EXPECT_THAT(CardsOf(HeldElsewhere(DockerRegistry(), "docker", {}, {Kind::kAll, {}})), IsEmpty());
}

class Broken final : public driver::MissingBackend {
 public:
  Broken() : MissingBackend("docker") {}
  absl::StatusOr<std::vector<CardSight>> LookAtCards(const std::vector<NodeCards>& nodes, absl::Time) override {
    ++rounds;
    std::vector<CardSight> cards;
    for (const NodeCards& node : nodes) {
      for (int card = 0; card < node.cards; ++card) {
        cards.push_back({.node = node.node, .card = card, .broken = card == node.cards - 1 ? "Xid 79" : ""});
      }
    }
    return cards;
  }
  std::atomic<int> rounds = 0;
};

struct Watched {
  explicit Watched(absl::Duration interval) {
    options.interval = interval;
    options.pause = absl::Milliseconds(1);
    options.backends = {{"docker", backend}};
    options.registry = [] { return std::make_shared<const core::Registry>(DockerRegistry()); };
    options.found = [](const loop::CardsHeldElsewhere&) {};
    options.cards = [this](const loop::CardsSeen& seen) {
      const std::lock_guard lock(mutex);
      EXPECT_EQ(seen.backend, "docker");
      EXPECT_EQ(seen.cards.size(), 4u);
      for (const core::CardFault& fault : seen.faults) told.push_back(fault);
    };
  }
  void Await(int rounds) const {
    while (backend->rounds < rounds) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

  std::shared_ptr<Broken> backend = std::make_shared<Broken>();
  std::mutex mutex;
  std::vector<core::CardFault> told;
  EngineWatchOptions options;
};

TEST(EngineWatch, TellsOfABrokenCardOnce) {
  Watched w(absl::Milliseconds(1));
  {
    const EngineWatch watch(w.options);
    w.Await(3);
  }
  EXPECT_THAT(w.told, ElementsAre(core::CardFault{.node = "gpu-1", .card = 3, .why = "Xid 79"}));
}

TEST(EngineWatch, LooksWhenItIsAsked) {
  Watched w(absl::Hours(1));
  EngineWatch watch(w.options);
  w.Await(1);
  watch.LookSoon();
  w.Await(2);
}

}  // namespace
}  // namespace tp::tpd
