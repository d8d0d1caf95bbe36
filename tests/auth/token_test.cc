#include "auth/token.h"

#include <gtest/gtest.h>

namespace tp::auth {
namespace {

TEST(Token, TextRoundTrips) {
  const Token token = MakeToken();
  const auto parsed = ParseToken(Text(token));
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed->id, token.id);
  EXPECT_EQ(parsed->secret, token.secret);
}

TEST(Token, IsFreshEachTime) {
  const Token a = MakeToken();
  const Token b = MakeToken();
  EXPECT_NE(a.id, b.id);
  EXPECT_NE(a.secret, b.secret);
}

TEST(Token, RefusesAnythingElse) {
  const std::string good = Text(MakeToken());
  std::string wrong_prefix = good;
  wrong_prefix[0] = 'x';
  std::string wrong_separator = good;
  wrong_separator[19] = '-';
  std::string upper = good;
  upper[4] = 'A';
  for (const std::string& text : {std::string(), std::string("tp_"), good.substr(1), good + "0", wrong_prefix,
                                  wrong_separator, upper, std::string(good.size(), '\0')}) {
    EXPECT_EQ(ParseToken(text).status().code(), absl::StatusCode::kUnauthenticated) << text;
  }
}

TEST(Token, RowHoldsNoSecretAndProvesIt) {
  const Token token = MakeToken();
  const store::TokenRow row = RowOf(token, {"ana", store::Role::kUser}, absl::UnixEpoch());
  EXPECT_EQ(row.secret_sha256.find(token.secret), std::string::npos);
  EXPECT_TRUE(Proves(token, row));
  Token other = token;
  other.secret = MakeToken().secret;
  EXPECT_FALSE(Proves(other, row));
}

}  // namespace
}  // namespace tp::auth
