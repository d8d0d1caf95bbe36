#include "api/page_token.h"

#include <gtest/gtest.h>

namespace tp::api {
namespace {

TEST(PageTokens, RoundTrip) {
  const PageTokens tokens("key");
  for (const int64_t position : {int64_t{0}, int64_t{1}, int64_t{-1}, INT64_MAX, INT64_MIN}) {
    const auto read = tokens.Read("list", tokens.Make("list", position));
    ASSERT_TRUE(read.ok()) << position;
    EXPECT_EQ(*read, position);
  }
}

TEST(PageTokens, RefusesOtherListsServersAndTampering) {
  const PageTokens tokens("key");
  const std::string token = tokens.Make("list", 42);
  EXPECT_EQ(tokens.Read("other list", token).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(PageTokens("other key").Read("list", token).ok());
  for (size_t i = 0; i < token.size(); ++i) {
    std::string changed = token;
    changed[i] = changed[i] == '1' ? '2' : '1';
    EXPECT_FALSE(tokens.Read("list", changed).ok()) << i;
  }
  for (const std::string& bad : {std::string(), std::string("x"), token + "0", token + " ", token.substr(1)}) {
    EXPECT_FALSE(tokens.Read("list", bad).ok()) << bad;
  }
}

}  // namespace
}  // namespace tp::api
