#include <gtest/gtest.h>

#include "tests/conformance/docker_world.h"
#include "tests/conformance/suite.h"

namespace tp::conformance {
namespace {

constexpr int kEngineId = 32;

const tp::testing::DockerEngine& Engine() {
  static const tp::testing::DockerEngine engine(kEngineId);
  return engine;
}

const auto kWorlds = ::testing::Values(WorldParam{"engine", [] { return std::make_unique<DockerWorld>(Engine()); }});
INSTANTIATE_TEST_SUITE_P(Docker, Conformance, kWorlds, WorldName);
INSTANTIATE_TEST_SUITE_P(Docker, EngineConformance, kWorlds, WorldName);
INSTANTIATE_TEST_SUITE_P(Docker, MemoryConformance, kWorlds, WorldName);
INSTANTIATE_TEST_SUITE_P(Docker, HungStorageConformance, kWorlds, WorldName);
INSTANTIATE_TEST_SUITE_P(DockerClock, Conformance,
                         ::testing::Values(WorldParam{
                             "ahead",
                             [] { return std::make_unique<DockerWorld>(Engine(), TP_TEST_CLOCK_AHEAD_BINARY); }}),
                         WorldName);

}  // namespace
}  // namespace tp::conformance
