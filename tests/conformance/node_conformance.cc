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

INSTANTIATE_TEST_SUITE_P(Node, Conformance,
                         ::testing::Values(WorldParam{"ssh", [] { return std::make_unique<NodeWorld>(Hosts()); }}),
                         WorldName);

INSTANTIATE_TEST_SUITE_P(NodeCopied, Conformance,
                         ::testing::Values(WorldParam{"ssh",
                                                      [] { return std::make_unique<NodeCopiedWorld>(Hosts()); }}),
                         WorldName);

}  // namespace
}  // namespace tp::conformance
