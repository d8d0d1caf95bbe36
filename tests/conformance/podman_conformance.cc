#include <gtest/gtest.h>

#include "tests/conformance/docker_world.h"
#include "tests/conformance/suite.h"

namespace tp::conformance {
namespace {

constexpr int kEngineId = 37;

const tp::testing::DockerEngine& Engine() {
  static const tp::testing::DockerEngine engine(kEngineId, tp::testing::EngineKind::kPodman);
  return engine;
}

const auto kWorlds = ::testing::Values(WorldParam{"engine", [] { return std::make_unique<DockerWorld>(Engine()); }});
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(HungStorageConformance);
INSTANTIATE_TEST_SUITE_P(Podman, Conformance, kWorlds, WorldName);
INSTANTIATE_TEST_SUITE_P(Podman, EngineConformance, kWorlds, WorldName);
INSTANTIATE_TEST_SUITE_P(Podman, MemoryConformance, kWorlds, WorldName);

}  // namespace
}  // namespace tp::conformance
