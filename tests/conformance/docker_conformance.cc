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

INSTANTIATE_TEST_SUITE_P(Docker, Conformance,
                         ::testing::Values(WorldParam{"engine",
                                                      [] { return std::make_unique<DockerWorld>(Engine()); }}),
                         WorldName);

}  // namespace
}  // namespace tp::conformance
