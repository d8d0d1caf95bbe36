// A small line plot of text: dots of braille, eight to a character, or stars where the terminal has ASCII
// only; axes with labels. Pure.
#pragma once

#include <string>
#include <vector>

#include "cli/terminal.h"

namespace tp::cli {

struct PlotPoint {
  double x = 0;
  double y = 0;
};

struct PlotSpec {
  std::string title;
  std::string x_label;
  std::vector<PlotPoint> points;  // at least one; what is not finite is left out
};

// At most as wide as the terminal, 72 columns where it has no width. Ends in a newline.
std::string Plot(const PlotSpec& spec, const Terminal& terminal);

}  // namespace tp::cli
