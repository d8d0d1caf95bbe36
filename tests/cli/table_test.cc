#include "cli/render/table.h"

#include <sstream>

#include <gtest/gtest.h>

#include "cli/render/csv.h"
#include "cli/render/text.h"

namespace tp::cli {
namespace {

constexpr Terminal kPipe = {};

class TableTest : public testing::Test {
 protected:
  void SetUp() override { UseUtf8Locale(); }
};

int WidestLine(const std::string& text) {
  std::istringstream lines(text);
  std::string line;
  int widest = 0;
  while (std::getline(lines, line)) widest = std::max(widest, DisplayWidth(line));
  return widest;
}

TEST_F(TableTest, AlignsColumnsByWidth) {
  Table table({{"NAME"}, {"COUNT", Align::kRight}, {"NOTE"}});
  table.AddRow({{"a"}, {"7"}, {"x"}});
  table.AddRow({{"訓練"}, {"12345678"}, {""}});
  EXPECT_EQ(table.Render(kPipe),
            "NAME     COUNT  NOTE\n"
            "a            7  x\n"
            "訓練  12345678  -\n");
}

TEST_F(TableTest, NeverCutsWhereThereIsNoTerminal) {
  Table table({{"ID"}, {"WHY", Align::kLeft, true}});
  table.AddRow({{"train-1"}, {std::string(500, 'w')}});
  EXPECT_NE(table.Render(kPipe).find(std::string(500, 'w')), std::string::npos);
}

TEST_F(TableTest, CutsFlexibleColumnsFirst) {
  Table table({{"ID"}, {"WHY", Align::kLeft, true}, {"AGE"}});
  table.AddRow({{"a-rather-long-name-1"}, {std::string(500, 'w')}, {"3m"}});
  const std::string text = table.Render({.is_tty = true, .columns = 60, .colors = false});
  EXPECT_EQ(WidestLine(text), 60);
  EXPECT_NE(text.find("a-rather-long-name-1"), std::string::npos);
  EXPECT_NE(text.find("w…  3m"), std::string::npos);
}

TEST_F(TableTest, CutsAllColumnsWhereTheTerminalIsVeryNarrow) {
  Table table({{"ID"}, {"WHY", Align::kLeft, true}, {"SHAPE"}});
  table.AddRow({{"a-rather-long-name-1"}, {std::string(500, 'w')}, {"h200:16 = 2 nodes x 8"}});
  EXPECT_LE(WidestLine(table.Render({.is_tty = true, .columns = 30, .colors = false})), 30);
}

TEST_F(TableTest, LeavesOutSpareColumnsBeforeItCutsTheOthers) {
  Table table(
      {{"ID"}, {"WHY", Align::kLeft, true}, {"LESS", Align::kLeft, false, 1}, {"LEAST", Align::kLeft, false, 2}});
  table.AddRow({{"train-1"}, {std::string(40, 'w')}, {"less"}, {"least"}});
  EXPECT_NE(table.Render({.columns = 50}).find("LEAST"), std::string::npos);
  EXPECT_EQ(table.Render({.columns = 46}).find("LEAST"), std::string::npos);
  EXPECT_NE(table.Render({.columns = 46}).find("LESS"), std::string::npos);
  EXPECT_EQ(table.Render({.columns = 40}).find("LESS"), std::string::npos);
  EXPECT_NE(table.Render(kPipe).find("LEAST"), std::string::npos);
  for (const int columns : {30, 40, 46, 50, 60}) EXPECT_LE(WidestLine(table.Render({.columns = columns})), columns);
}

TEST_F(TableTest, EscapesHostileCells) {
  Table table({{"NAME"}});
  table.AddRow({{"\x1b]0;owned\x07"}});
  EXPECT_EQ(table.Render(kPipe), "NAME\n\\x1b]0;owned\\x07\n");
}

TEST_F(TableTest, ColoursDoNotChangeTheLayout) {
  Table table({{"STATE"}, {"X"}});
  table.AddRow({{"FAILED", Color::kRed}, {"y"}});
  const std::string text = table.Render({.is_tty = true, .columns = 80, .colors = true});
  EXPECT_NE(text.find("\x1b[31mFAILED\x1b[0m  y\n"), std::string::npos);
}

TEST(CsvLineTest, QuotesWhatNeedsIt) {
  EXPECT_EQ(CsvLine({"a", "b,c", "d\"e", "f\ng", ""}), "a,\"b,c\",\"d\"\"e\",\"f\ng\",\r\n");
}

}  // namespace
}  // namespace tp::cli
