// Signatures, against values worked out elsewhere.
#include "notify/signature.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/status.h"

namespace tp::notify {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// The example of the Standard Webhooks specification's libraries.
TEST(Sign, IsThatOfStandardWebhooks) {
  const auto key = KeyOfSecret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
  ASSERT_TRUE(key.ok()) << key.status();
  EXPECT_EQ(Sign(*key, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, R"({"test": 2432232314})"),
            "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
}

TEST(KeyOfSecret, TakesRawBytes) {
  const auto key = KeyOfSecret("sixteen bytes ok");
  ASSERT_TRUE(key.ok());
  EXPECT_EQ(*key, "sixteen bytes ok");
}

TEST(KeyOfSecret, RefusesWhatIsShortOrBrokenAndDoesNotRepeatIt) {
  for (const char* bad : {"", "short-secret", "whsec_", "whsec_c2hvcnQ=", "whsec_!!not-base64-at-all!!"}) {
    const auto key = KeyOfSecret(bad);
    EXPECT_EQ(key.status().code(), absl::StatusCode::kInvalidArgument) << bad;
    EXPECT_THAT(std::string(Message(key.status())), Not(HasSubstr("not-base64-at"))) << bad;
    EXPECT_THAT(std::string(Message(key.status())), Not(HasSubstr("short-secret"))) << bad;
  }
}

}  // namespace
}  // namespace tp::notify
