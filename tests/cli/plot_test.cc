#include "cli/render/plot.h"

#include <cmath>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/render/text.h"

namespace tp::cli {
namespace {

using testing::Each;
using testing::HasSubstr;
using testing::Le;
using testing::StartsWith;

PlotSpec Falling() {
  PlotSpec spec = {.title = "loss", .x_label = "step", .points = {}};
  for (int step = 0; step <= 100; ++step) spec.points.push_back({step * 10.0, 2.5 - step * 0.02});
  return spec;
}

std::vector<int> Widths(const std::string& text) {
  std::vector<int> widths;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) widths.push_back(DisplayWidth(line));
  return widths;
}

TEST(PlotTest, InAscii) {
  EXPECT_EQ(Plot(Falling(), {.columns = 30}),
            "loss  0.5 at step 1000\n"
            "2.5 |***\n"
            "    |  ****\n"
            "    |     ****\n"
            "    |         ****\n"
            "    |            ****\n"
            "    |                ****\n"
            "    |                   ****\n"
            "0.5 |                      ***\n"
            "    +-------------------------\n"
            "     0        step        1000\n");
}

TEST(PlotTest, InBrailleWhereTheTerminalHasIt) {
  UseUtf8Locale();
  const std::string plot = Plot(Falling(), {.columns = 30, .utf8 = true});
  EXPECT_THAT(plot, HasSubstr("2.5 ┤⠑"));
  EXPECT_THAT(plot, HasSubstr("└──"));
  EXPECT_THAT(Widths(plot), Each(Le(30)));
}

TEST(PlotTest, FitsEveryWidth) {
  UseUtf8Locale();
  for (const int columns : {20, 40, 80, 200}) {
    for (const bool utf8 : {false, true}) {
      EXPECT_THAT(Widths(Plot(Falling(), {.columns = columns, .utf8 = utf8})), Each(Le(columns)));
    }
  }
}

TEST(PlotTest, OneValueIsAFlatLine) {
  const std::string plot = Plot({.title = "x", .x_label = "step", .points = {{3, 7}}}, {});
  EXPECT_THAT(plot, StartsWith("x  7 at step 3\n"));
  EXPECT_THAT(plot, HasSubstr("7 |"));
}

TEST(PlotTest, WhatIsNotFiniteIsLeftOut) {
  PlotSpec spec = Falling();
  spec.points.push_back({2000, std::nan("")});
  spec.points.push_back({3000, HUGE_VAL});
  EXPECT_EQ(Plot(spec, {.columns = 40}), Plot(Falling(), {.columns = 40}));
  EXPECT_EQ(Plot({.title = "x", .x_label = "step", .points = {{1, std::nan("")}}}, {}), "x: no finite value\n");
}

}  // namespace
}  // namespace tp::cli
