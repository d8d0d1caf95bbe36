#include "cli/render/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tp::cli {
namespace {

TEST(EscapeControlTest, LeavesReadableTextAlone) {
  EXPECT_EQ(EscapeControl("plain, über, 訓練, \\n"), "plain, über, 訓練, \\n");
}

TEST(EscapeControlTest, ShowsControlCharacters) {
  EXPECT_EQ(EscapeControl("a\x1b[31mb\nc\rd\te\x7f"), "a\\x1b[31mb\\nc\\rd\\te\\x7f");
  EXPECT_EQ(EscapeControl(std::string_view("a\0b", 3)), "a\\x00b");
}

TEST(EscapeControlTest, ShowsEightBitControlsAndOverrides) {
  EXPECT_EQ(EscapeControl("a\xc2\x9b"
                          "31m"),
            "a\\u009b31m");
  EXPECT_EQ(EscapeControl("exe\u202egpj"), "exe\\u202egpj");
  EXPECT_EQ(EscapeControl("a\u2066b\u200bc\ufeff"), "a\\u2066b\\u200bc\\ufeff");
}

TEST(EscapeControlTest, ShowsBrokenUtf8ByteByByte) {
  EXPECT_EQ(EscapeControl("a\xff\xc3"), "a\\xff\\xc3");
  EXPECT_EQ(EscapeControl("\xc0\xaf"), "\\xc0\\xaf") << "overlong";
  EXPECT_EQ(EscapeControl("\xed\xa0\x80"), "\\xed\\xa0\\x80") << "surrogate";
  EXPECT_EQ(EscapeControl("\xf5\x80\x80\x80"), "\\xf5\\x80\\x80\\x80") << "above U+10FFFF";
}

TEST(IsUtf8Test, TellsBrokenFromWhole) {
  EXPECT_TRUE(IsUtf8(""));
  EXPECT_TRUE(IsUtf8("über 訓練 😀"));
  EXPECT_FALSE(IsUtf8("\xe8\xa8"));
}

class WidthTest : public testing::Test {
 protected:
  void SetUp() override { UseUtf8Locale(); }
};

TEST_F(WidthTest, CountsColumnsNotBytes) {
  EXPECT_EQ(DisplayWidth("abc"), 3);
  EXPECT_EQ(DisplayWidth("über"), 4);
  EXPECT_EQ(DisplayWidth("訓練"), 4);
  EXPECT_EQ(DisplayWidth("e\u0301"), 1) << "a combining accent takes no column";
}

TEST_F(WidthTest, CutsBetweenCharactersAndSaysSo) {
  EXPECT_EQ(FitWidth("abcdef", 6), "abcdef");
  EXPECT_EQ(FitWidth("abcdef", 4), "abc…");
  EXPECT_EQ(FitWidth("訓練訓練", 6), "訓練…");
  EXPECT_EQ(DisplayWidth(FitWidth("訓練訓練", 4)), 3) << "half a wide character is not shown";
  EXPECT_EQ(FitWidth("abc", 0), "");
}

TEST(WrapWidthTest, BreaksAtBlanks) {
  UseUtf8Locale();
  EXPECT_THAT(WrapWidth("one two three", 7), testing::ElementsAre("one two", "three"));
  EXPECT_THAT(WrapWidth("one two three", 8), testing::ElementsAre("one two", "three"));
  EXPECT_THAT(WrapWidth("訓練 訓練", 4), testing::ElementsAre("訓練", "訓練"));
  EXPECT_THAT(WrapWidth("abcdefgh ij", 3), testing::ElementsAre("abc", "def", "gh", "ij"));
  EXPECT_THAT(WrapWidth("as it is", 0), testing::ElementsAre("as it is"));
  EXPECT_THAT(WrapWidth("", 5), testing::ElementsAre(""));
}

}  // namespace
}  // namespace tp::cli
