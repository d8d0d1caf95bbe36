#include "cli/arguments.h"

#include <array>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/ranks.h"

namespace tp::cli {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(SplitArgumentsTest, LeavesTheCommandUntouched) {
  const std::array<const char*, 9> argv = {"tp", "submit", "--wait", "--", "prog", "[1,2]", "--wait", "--", ""};
  const Arguments arguments = SplitArguments(static_cast<int>(argv.size()), argv.data());
  EXPECT_THAT(arguments.own, ElementsAre("submit", "--wait"));
  EXPECT_TRUE(arguments.has_command);
  EXPECT_THAT(arguments.command, ElementsAre("prog", "[1,2]", "--wait", "--", ""));
}

TEST(SplitArgumentsTest, KnowsThatThereIsNoCommand) {
  const std::array<const char*, 2> argv = {"tp", "ls"};
  const Arguments arguments = SplitArguments(2, argv.data());
  EXPECT_FALSE(arguments.has_command);
  EXPECT_THAT(arguments.command, IsEmpty());
}

TEST(ParseRanksTest, TakesThreeForms) {
  EXPECT_THAT(*ParseRanks({"3", "1-0"}), ElementsAre("0-3", "1-0"));
  EXPECT_THAT(*ParseRanks({"1", "all"}), ElementsAre("*"));
  for (const char* wrong : {"", "-1", "1-", "a", "1-2-3", "0x1"}) EXPECT_FALSE(ParseRanks({wrong}).ok()) << wrong;
}

TEST(AreSeveralTest, CountsAllAsSeveral) {
  EXPECT_FALSE(AreSeveral({}));
  EXPECT_FALSE(AreSeveral({"0-1"}));
  EXPECT_TRUE(AreSeveral({"0-0", "0-1"}));
  EXPECT_TRUE(AreSeveral({"*"}));
}

}  // namespace
}  // namespace tp::cli
