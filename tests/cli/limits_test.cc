#include "cli/limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tp::cli {
namespace {

using testing::HasSubstr;

TEST(LimitsTest, NumbersNoneAndDefault) {
  EXPECT_EQ(**ParseLimit("16", "--gpus"), 16);
  EXPECT_EQ(**ParseLimit("0", "--gpus"), 0);
  EXPECT_EQ(**ParseLimit("none", "--gpus"), kNoLimit);
  EXPECT_EQ(*ParseLimit("default", "--gpus"), std::nullopt);
  for (const char* text : {"", "-1", "1.5", "16 ", "x", "9223372036854775808", "0x10", "None"}) {
    const auto limit = ParseLimit(text, "--gpus");
    EXPECT_THAT(limit.status().message(), HasSubstr("--gpus")) << text;
  }
}

TEST(LimitsTest, BytesWithTheirUnit) {
  EXPECT_EQ(**ParseByteLimit("1TiB", "--storage"), int64_t{1} << 40);
  EXPECT_EQ(**ParseByteLimit("1048576", "--storage"), 1048576);
  EXPECT_EQ(**ParseByteLimit("8191PiB", "--storage"), int64_t{8191} << 50);
  EXPECT_EQ(**ParseByteLimit("none", "--storage"), kNoLimit);
  for (const char* text : {"1TB", "1 TiB", "8192PiB", "-1GiB", "TiB", "1tib"}) {
    EXPECT_FALSE(ParseByteLimit(text, "--storage").ok()) << text;
  }
}

TEST(LimitsTest, OnlyWhatIsNamedIsAskedFor) {
  v1::SetQuotaRequest request;
  LimitFlags flags;
  EXPECT_TRUE(flags.empty());
  flags.jobs = "default";
  flags.series = {"h200=none", "a100=default", "b200=0"};
  flags.gpu_hours = "500";
  flags.storage = "2GiB";
  EXPECT_FALSE(flags.empty());
  ASSERT_TRUE(ApplyLimits(flags, request).ok());
  const v1::QuotaLimits& limits = request.limits();
  EXPECT_FALSE(limits.has_gpus());
  EXPECT_FALSE(limits.has_jobs());
  EXPECT_EQ(limits.series_gpus().at("h200"), kNoLimit);
  EXPECT_EQ(limits.series_gpus().count("a100"), 0U);
  EXPECT_EQ(limits.series_gpus().at("b200"), 0);
  EXPECT_EQ(limits.gpu_hours(), 500);
  EXPECT_EQ(limits.storage_bytes(), int64_t{2} << 30);
  EXPECT_THAT(request.clear(), testing::UnorderedElementsAre("jobs", "series_gpus.a100"));
}

TEST(LimitsTest, ASeriesNeedsItsNumber) {
  for (const char* text : {"h200", "=8", "h200=", "h200=x"}) {
    v1::SetQuotaRequest request;
    LimitFlags flags;
    flags.series = {text};
    EXPECT_THAT(ApplyLimits(flags, request).message(), HasSubstr("--series")) << text;
  }
}

}  // namespace
}  // namespace tp::cli
