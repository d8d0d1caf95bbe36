#include <gtest/gtest.h>

#include "tests/conformance/local_world.h"
#include "tests/conformance/suite.h"

namespace tp::conformance {
namespace {

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(MemoryConformance);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(EngineConformance);
INSTANTIATE_TEST_SUITE_P(
    Local, Conformance,
    ::testing::Values(WorldParam{"cgroups", [] { return std::make_unique<LocalWorld>(true); }},
                      WorldParam{"plain", [] { return std::make_unique<LocalWorld>(false); }},
                      WorldParam{"clock_ahead",
                                 [] { return std::make_unique<LocalWorld>(false, TP_TEST_CLOCK_AHEAD_BINARY); }}),
    WorldName);
INSTANTIATE_TEST_SUITE_P(Local, HungStorageConformance,
                         ::testing::Values(WorldParam{"plain", [] { return std::make_unique<LocalWorld>(false); }}),
                         WorldName);

}  // namespace
}  // namespace tp::conformance
