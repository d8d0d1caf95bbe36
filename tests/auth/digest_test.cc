#include "auth/digest.h"

#include <set>

#include <gtest/gtest.h>

namespace tp::auth {
namespace {

TEST(Digest, Sha256AsPublished) {
  EXPECT_EQ(Sha256Hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(Sha256Hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

TEST(Digest, HmacAsInRfc4231) {
  EXPECT_EQ(Hex(HmacSha256("Jefe", "what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

TEST(Digest, HexKeepsEveryBit) { EXPECT_EQ(Hex(std::string("\x00\x0f\xf0\xff", 4)), "000ff0ff"); }

TEST(Digest, RandomBytesDoNotRepeat) {
  std::set<std::string> seen;
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(seen.insert(RandomBytes(16)).second);
}

TEST(Digest, ConstantTimeEquality) {
  EXPECT_TRUE(EqualInConstantTime("same", "same"));
  EXPECT_FALSE(EqualInConstantTime("same", "samE"));
  EXPECT_FALSE(EqualInConstantTime("same", "same2"));
  EXPECT_TRUE(EqualInConstantTime("", ""));
}

}  // namespace
}  // namespace tp::auth
