#include <gtest/gtest.h>

#include "tests/conformance/node_world.h"
#include "tests/conformance/suite.h"

namespace tp::conformance {
namespace {

constexpr int kMostRanksOfTheSuite = 3;

const tp::testing::SshHosts& Hosts() {
  static const tp::testing::SshHosts hosts(kMostRanksOfTheSuite);
  return hosts;
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(MemoryConformance);

const auto kShared = ::testing::Values(WorldParam{"ssh", [] { return std::make_unique<NodeWorld>(Hosts()); }});
INSTANTIATE_TEST_SUITE_P(Node, Conformance, kShared, WorldName);
INSTANTIATE_TEST_SUITE_P(Node, EngineConformance, kShared, WorldName);
INSTANTIATE_TEST_SUITE_P(Node, HungStorageConformance, kShared, WorldName);
INSTANTIATE_TEST_SUITE_P(NodeClock, Conformance,
                         ::testing::Values(WorldParam{
                             "ahead", [] { return std::make_unique<NodeWorld>(Hosts(), TP_TEST_CLOCK_AHEAD_BINARY); }}),
                         WorldName);

const auto kCopied = ::testing::Values(WorldParam{"ssh", [] { return std::make_unique<NodeCopiedWorld>(Hosts()); }});
INSTANTIATE_TEST_SUITE_P(NodeCopied, Conformance, kCopied, WorldName);
INSTANTIATE_TEST_SUITE_P(NodeCopied, EngineConformance, kCopied, WorldName);

}  // namespace
}  // namespace tp::conformance
