#include "auth/authenticator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tp::auth {
namespace {

using store::Role;
using testing::_;
using testing::Return;

class MockReader : public store::Reader {
 public:
  MOCK_METHOD(absl::StatusOr<core::RunWithSteps>, GetRun, (int64_t), (override));
  MOCK_METHOD(absl::StatusOr<int64_t>, LastRun, (const std::string&), (override));
  MOCK_METHOD(absl::StatusOr<store::RunPage>, ListRuns, (const store::RunFilter&, std::optional<int64_t>, int),
              (override));
  MOCK_METHOD(absl::StatusOr<std::vector<store::EventRow>>, Events, (int64_t, int64_t, int), (override));
  MOCK_METHOD(absl::StatusOr<std::vector<store::QueuedStepRow>>, QueuedSteps, (), (override));
  MOCK_METHOD(absl::StatusOr<std::vector<store::EventRow>>, EventsAfter, (int64_t, int), (override));
  MOCK_METHOD(absl::StatusOr<std::vector<store::WordChange>>, WordChangesAfter, (int64_t, int), (override));
  MOCK_METHOD(absl::StatusOr<int64_t>, Revision, (), (override));
  MOCK_METHOD(absl::StatusOr<store::Meta>, ReadMeta, (), (override));
  MOCK_METHOD(absl::StatusOr<std::optional<store::RequestRow>>, FindRequest, (const std::string&, const std::string&),
              (override));
  MOCK_METHOD(absl::StatusOr<std::vector<std::string>>, Owners, (), (override));
  MOCK_METHOD(absl::StatusOr<std::vector<std::string>>, NeededSnapshots, (), (override));
  MOCK_METHOD(absl::StatusOr<std::vector<std::string>>, SnapshotsOf, (const std::string&, absl::Time), (override));
  MOCK_METHOD(absl::StatusOr<std::optional<store::TokenRow>>, FindToken, (const std::string&), (override));
  MOCK_METHOD(absl::StatusOr<std::vector<store::UsageRow>>, Usage, (const store::UsageFilter&, store::UsageKey),
              (override));
  MOCK_METHOD(absl::StatusOr<std::vector<core::LedgerRow>>, Ledger, (const store::UsageFilter&, int64_t, int),
              (override));
  MOCK_METHOD(absl::StatusOr<std::vector<store::MonthUseRow>>, MonthUse, (), (override));
};

using FoundToken = std::optional<store::TokenRow>;

class AuthenticatorTest : public testing::Test {
 protected:
  const Token token_ = MakeToken();
  const store::TokenRow row_ = RowOf(token_, {"ana", Role::kOperator}, absl::UnixEpoch());
  absl::Time now_ = absl::UnixEpoch();
  testing::StrictMock<MockReader> reader_;
  Authenticator authenticator_{reader_, [this] { return now_; }, absl::Seconds(10)};
};

TEST_F(AuthenticatorTest, KnowsWhoHoldsTheToken) {
  EXPECT_CALL(reader_, FindToken(token_.id)).WillOnce(Return(FoundToken(row_)));
  const auto who = authenticator_.Authenticate("Bearer " + Text(token_));
  ASSERT_TRUE(who.ok()) << who.status();
  EXPECT_EQ(*who, (Identity{"ana", Role::kOperator}));
}

TEST_F(AuthenticatorTest, ReadsTheStoreAgainOnlyAfterAWhile) {
  EXPECT_CALL(reader_, FindToken(token_.id)).Times(2).WillRepeatedly(Return(FoundToken(row_)));
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(authenticator_.Authenticate("Bearer " + Text(token_)).ok());
  now_ += absl::Seconds(10);
  EXPECT_TRUE(authenticator_.Authenticate("Bearer " + Text(token_)).ok());
}

TEST_F(AuthenticatorTest, WrongSecretAndUnknownIdSoundTheSame) {
  EXPECT_CALL(reader_, FindToken(token_.id)).WillOnce(Return(FoundToken(row_)));
  Token wrong = token_;
  wrong.secret = MakeToken().secret;
  const auto wrong_secret = authenticator_.Authenticate("Bearer " + Text(wrong));

  const Token unknown = MakeToken();
  EXPECT_CALL(reader_, FindToken(unknown.id)).WillOnce(Return(FoundToken()));
  const auto unknown_id = authenticator_.Authenticate("Bearer " + Text(unknown));

  EXPECT_EQ(wrong_secret.status().code(), absl::StatusCode::kUnauthenticated);
  EXPECT_EQ(wrong_secret.status(), unknown_id.status());
}

TEST_F(AuthenticatorTest, WrongSecretIsRefusedFromTheCacheToo) {
  EXPECT_CALL(reader_, FindToken(token_.id)).WillOnce(Return(FoundToken(row_)));
  EXPECT_TRUE(authenticator_.Authenticate("Bearer " + Text(token_)).ok());
  Token wrong = token_;
  wrong.secret = MakeToken().secret;
  EXPECT_FALSE(authenticator_.Authenticate("Bearer " + Text(wrong)).ok());
}

TEST_F(AuthenticatorTest, MalformedNeverReachesTheStore) {
  for (const std::string& value : {std::string(), std::string("Bearer"), std::string("Bearer x"), Text(token_),
                                   "bearer " + Text(token_), "Basic " + Text(token_)}) {
    EXPECT_EQ(authenticator_.Authenticate(value).status().code(), absl::StatusCode::kUnauthenticated) << value;
  }
}

TEST_F(AuthenticatorTest, AStoreThatFailsIsNotAWrongToken) {
  EXPECT_CALL(reader_, FindToken(_)).WillOnce(Return(absl::UnavailableError("disk")));
  EXPECT_EQ(authenticator_.Authenticate("Bearer " + Text(token_)).status().code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace tp::auth
