#include "cli/exit_codes.h"

#include <gtest/gtest.h>

#include "cli/version_skew.h"

namespace tp::cli {
namespace {

TEST(ExitCodeTest, OfStatuses) {
  EXPECT_EQ(ExitCodeOf(absl::StatusCode::kInvalidArgument), ExitCode::kUsage);
  EXPECT_EQ(ExitCodeOf(absl::StatusCode::kUnavailable), ExitCode::kUnreachable);
  EXPECT_EQ(ExitCodeOf(absl::StatusCode::kDeadlineExceeded), ExitCode::kUnreachable);
  EXPECT_EQ(ExitCodeOf(absl::StatusCode::kNotFound), ExitCode::kNotFound);
  EXPECT_EQ(ExitCodeOf(absl::StatusCode::kPermissionDenied), ExitCode::kDenied);
  EXPECT_EQ(ExitCodeOf(absl::StatusCode::kUnauthenticated), ExitCode::kDenied);
  EXPECT_EQ(ExitCodeOf(absl::StatusCode::kFailedPrecondition), ExitCode::kConflict);
  EXPECT_EQ(ExitCodeOf(absl::StatusCode::kAlreadyExists), ExitCode::kConflict);
}

TEST(ExitCodeTest, NoErrorOfTheServerLooksLikeAFailedRun) {
  for (int code = 1; code <= 16; ++code) {
    const ExitCode exit = ExitCodeOf(static_cast<absl::StatusCode>(code));
    EXPECT_NE(exit, ExitCode::kOk) << code;
    EXPECT_NE(exit, ExitCode::kFailed) << code;
  }
}

TEST(ExitCodeTest, OfRuns) {
  EXPECT_EQ(ExitCodeOf(v1::RUN_STATE_SUCCEEDED), ExitCode::kOk);
  EXPECT_EQ(ExitCodeOf(v1::RUN_STATE_FAILED), ExitCode::kFailed);
  EXPECT_EQ(ExitCodeOf(v1::RUN_STATE_STOPPED), ExitCode::kStopped);
  EXPECT_EQ(ExitCodeOf(v1::RUN_STATE_PARTIAL), ExitCode::kPartial);
  EXPECT_EQ(ExitCodeOf(v1::RUN_STATE_RUNNING), ExitCode::kOk);
}

TEST(VersionSkewTest, PatchesAreCompatible) {
  EXPECT_FALSE(VersionSkew("0.1.0", "0.1.7"));
  EXPECT_TRUE(VersionSkew("0.1.0", "0.2.0"));
  EXPECT_TRUE(VersionSkew("0.1.0", "1.1.0"));
}

}  // namespace
}  // namespace tp::cli
