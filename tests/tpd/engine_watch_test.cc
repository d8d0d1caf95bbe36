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
  absl::StatusOr<std::vector<BrokenCard>> BrokenCards(const std::vector<NodeCards>& nodes, absl::Time) override {
    ++rounds;
    std::vector<BrokenCard> broken;
    for (const NodeCards& node : nodes) broken.push_back({node.node, node.cards - 1, "Xid 79"});
    return broken;
  }
  std::atomic<int> rounds = 0;
};

TEST(EngineWatch, TellsOfABrokenCardOnce) {
  auto backend = std::make_shared<Broken>();
  std::mutex mutex;
  std::vector<core::NodePart> told;
  EngineWatchOptions options;
  options.interval = absl::Milliseconds(1);
  options.backends = {{"docker", backend}};
  options.registry = [] { return std::make_shared<const core::Registry>(DockerRegistry()); };
  options.found = [](const loop::CardsHeldElsewhere&) {};
  options.broken = [&](const loop::PartBroken& broken) {
    const std::lock_guard lock(mutex);
    told.push_back(broken.part);
  };
  {
    const EngineWatch watch(std::move(options));
    while (backend->rounds < 3) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_THAT(told, ElementsAre(core::NodePart{.node = "gpu-1", .card = 3}));
}

}  // namespace
}  // namespace tp::tpd
