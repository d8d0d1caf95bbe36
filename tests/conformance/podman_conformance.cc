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

INSTANTIATE_TEST_SUITE_P(Podman, Conformance,
                         ::testing::Values(WorldParam{"engine",
                                                      [] { return std::make_unique<DockerWorld>(Engine()); }}),
                         WorldName);

}  // namespace
}  // namespace tp::conformance
