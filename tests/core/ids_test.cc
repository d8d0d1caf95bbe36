#include "core/ids.h"

#include <gtest/gtest.h>

namespace tp::core {
namespace {

TEST(Ids, SlugKeepsOnlyItsLetters) {
  EXPECT_EQ(MakeSlug("Train GPT_2 (v3)"), "train-gpt-2-v3");
  EXPECT_EQ(MakeSlug("---"), "run");
  EXPECT_EQ(MakeSlug("\xff\xfe"), "run");
  EXPECT_EQ(MakeSlug("../../etc/passwd"), "etc-passwd");
  const std::string cut = MakeSlug("abcdefghijklmnopqrstuvwxyz012- x");
  EXPECT_EQ(cut, "abcdefghijklmnopqrstuvwxyz012");  // 30 characters would end in '-'
}

TEST(Ids, KeyRoundTrip) {
  const Deployment deployment{"lab", 3};
  const AttemptRef attempt{{42, 1}, 7};
  const std::string key = AttemptKey(deployment, attempt);
  EXPECT_EQ(key, "tp-lab-e3-42-s1-a7");
  EXPECT_EQ(ParseAttemptKey(key), (ParsedKey{deployment, attempt}));
}

TEST(Ids, LongestKeyFits) {
  const std::string key = AttemptKey({"abcdefghij", 999}, {{9'999'999'999, 99}, 9999});
  EXPECT_LE(key.size(), 40u);
}

TEST(Ids, ForeignKeysAreNotOurs) {
  for (const char* key :
       {"", "tp", "tp-lab-e3-42-s1", "tp-lab-e3-42-s1-a07", "tp-lab-e3-42-s1-a7 ", "xx-lab-e3-42-s1-a7",
        "tp-Lab-e3-42-s1-a7", "tp-lab-e3-42-s1-a-7", "tp-lab-e3-42-s1-a99999999999", "tp--e3-42-s1-a7",
        "tp-lab-e3-42-s1-a7-0-1", "tp-lab-e99999999999999999999-42-s1-a7"}) {
    EXPECT_FALSE(ParseAttemptKey(key)) << key;
  }
}

TEST(Ids, DeploymentNames) {
  EXPECT_TRUE(CheckDeploymentName("lab1").ok());
  for (const char* name : {"", "1lab", "Lab", "lab-1", "abcdefghijk", "l b"})
    EXPECT_FALSE(CheckDeploymentName(name).ok()) << name;
}

TEST(Ids, Selectors) {
  EXPECT_EQ(ParseRunSelector("42")->run, 42);
  EXPECT_EQ(*ParseRunSelector("train-x-42")->slug, "train-x");
  EXPECT_TRUE(ParseRunSelector("@last")->last);
  for (const char* text : {"", "-42", "train", "train-", "042", "4 2", "99999999999999999999", "@first", "train-042"}) {
    EXPECT_FALSE(ParseRunSelector(text).ok()) << text;
  }
}

}  // namespace
}  // namespace tp::core
