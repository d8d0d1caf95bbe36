#include "api/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tp::api {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr size_t kPlenty = 1 << 20;

TEST(Metrics, LaterAttemptsSupersedeEqualSteps) {
  const std::string first = "{\"step\":1,\"loss\":3}\n{\"step\":2,\"loss\":2}\n{\"step\":3,\"loss\":1.9}\n";
  const std::string second = "{\"step\":2,\"loss\":2.5}\n{\"step\":4,\"loss\":1}\n";
  EXPECT_THAT(MergeMetrics({first, second}, 0, kPlenty).lines,
              ElementsAre("{\"step\":1,\"loss\":3}", "{\"step\":3,\"loss\":1.9}", "{\"step\":2,\"loss\":2.5}",
                          "{\"step\":4,\"loss\":1}"));
}

TEST(Metrics, SeveralLinesOfAStepInOneAttemptStay) {
  const std::string content = "{\"step\":1,\"loss\":3}\n{\"step\":1,\"eval\":0.5}\n";
  EXPECT_EQ(MergeMetrics({content}, 0, kPlenty).lines.size(), 2u);
}

TEST(Metrics, LeavesOutWhatIsNoObject) {
  const std::string content = "noise\n[1]\n\n{\"step\":1}\n{\"step\":2,\"lo";
  EXPECT_THAT(MergeMetrics({content}, 0, kPlenty).lines, ElementsAre("{\"step\":1}"));
  EXPECT_THAT(MergeMetrics({}, 0, kPlenty).lines, IsEmpty());
  EXPECT_THAT(MergeMetrics({"", ""}, 0, kPlenty).lines, IsEmpty());
}

TEST(Metrics, LinesWithoutAStepAreKept) {
  EXPECT_THAT(MergeMetrics({"{\"final\":1}\n", "{\"step\":\"x\"}\n"}, 5, kPlenty).lines,
              ElementsAre("{\"final\":1}", "{\"step\":\"x\"}"));
}

TEST(Metrics, AfterStep) {
  EXPECT_THAT(MergeMetrics({"{\"step\":1}\n{\"step\":2}\n{\"step\":3}\n"}, 2, kPlenty).lines,
              ElementsAre("{\"step\":2}", "{\"step\":3}"));
}

TEST(Metrics, KeepsTheNewestWhereThereIsTooMuch) {
  const MergedMetrics merged = MergeMetrics({"{\"step\":1}\n{\"step\":2}\n", "{\"step\":3}\n"}, 0, 20);
  EXPECT_TRUE(merged.truncated);
  EXPECT_THAT(merged.lines, ElementsAre("{\"step\":2}", "{\"step\":3}"));
}

TEST(Metrics, DeeplyNestedLinesDoNotEndTheProcess) {
  const std::string deep(500'000, '[');
  EXPECT_THAT(MergeMetrics({"{\"a\":" + deep + "\n{\"step\":1}\n"}, 0, kPlenty).lines, ElementsAre("{\"step\":1}"));
}

}  // namespace
}  // namespace tp::api
