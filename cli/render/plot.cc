#include "cli/render/plot.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>

#include <fmt/format.h>

#include "cli/render/color.h"
#include "cli/render/text.h"

namespace tp::cli {
namespace {

constexpr int kRows = 8;
constexpr int kDefaultColumns = 72;
constexpr int kMostColumns = 100;
constexpr int kFewestPlotColumns = 10;

// The dots of one braille character, from its top left: their bits in U+2800.
constexpr int kDotsAcross = 2;
constexpr int kDotsDown = 4;
constexpr std::array<std::array<unsigned, kDotsAcross>, kDotsDown> kDotBits = {
    {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}}};

struct Range {
  double low = 0;
  double high = 0;

  // 0 to 1; the middle where all values are one.
  double Place(double value) const { return high > low ? (value - low) / (high - low) : 0.5; }
};

struct Ranges {
  Range x;
  Range y;
};

struct Marks {
  std::string_view vertical;
  std::string_view corner;
  std::string_view horizontal;
};

constexpr Marks kLines = {"┤", "└", "─"};
constexpr Marks kAscii = {"|", "+", "-"};

std::vector<PlotPoint> FiniteOf(const std::vector<PlotPoint>& points) {
  std::vector<PlotPoint> finite;
  std::copy_if(points.begin(), points.end(), std::back_inserter(finite),
               [](const PlotPoint& point) { return std::isfinite(point.x) && std::isfinite(point.y); });
  std::stable_sort(finite.begin(), finite.end(), [](const PlotPoint& a, const PlotPoint& b) { return a.x < b.x; });
  return finite;
}

Ranges RangesOf(const std::vector<PlotPoint>& points) {
  Ranges ranges = {{points.front().x, points.front().x}, {points.front().y, points.front().y}};
  for (const PlotPoint& point : points) {
    ranges.x = {std::min(ranges.x.low, point.x), std::max(ranges.x.high, point.x)};
    ranges.y = {std::min(ranges.y.low, point.y), std::max(ranges.y.high, point.y)};
  }
  return ranges;
}

// Dots on a grid, from the top left.
class Grid {
 public:
  Grid(int across, int down) : across_(across), down_(down), dots_(static_cast<size_t>(across * down)) {}

  bool at(int column, int row) const { return dots_[Index(column, row)]; }

  // A line between the places of two points, 0 to 1 from the bottom left.
  void Line(double x0, double y0, double x1, double y1) {
    const double steps = std::max({std::abs(x1 - x0) * across_, std::abs(y1 - y0) * down_, 1.0});
    for (int i = 0; i <= static_cast<int>(steps); ++i) {
      const double part = i / std::floor(steps);
      Set(x0 + (x1 - x0) * part, y0 + (y1 - y0) * part);
    }
  }

 private:
  size_t Index(int column, int row) const {
    return static_cast<size_t>(row) * static_cast<size_t>(across_) + static_cast<size_t>(column);
  }

  void Set(double x, double y) {
    const auto column = static_cast<int>(std::lround(x * (across_ - 1)));
    const auto row = static_cast<int>(std::lround((1 - y) * (down_ - 1)));
    dots_[Index(column, row)] = true;
  }

  int across_;
  int down_;
  std::vector<bool> dots_;
};

void Draw(const std::vector<PlotPoint>& points, const Ranges& ranges, Grid& grid) {
  const PlotPoint* last = &points.front();
  for (const PlotPoint& point : points) {
    grid.Line(ranges.x.Place(last->x), ranges.y.Place(last->y), ranges.x.Place(point.x), ranges.y.Place(point.y));
    last = &point;
  }
}

std::string Utf8Of(unsigned code_point) {
  return {static_cast<char>(0xe0 | (code_point >> 12)), static_cast<char>(0x80 | ((code_point >> 6) & 0x3f)),
          static_cast<char>(0x80 | (code_point & 0x3f))};
}

std::string BrailleRow(const Grid& grid, int row, int columns) {
  std::string text;
  for (int column = 0; column < columns; ++column) {
    unsigned bits = 0;
    for (int y = 0; y < kDotsDown; ++y) {
      for (int x = 0; x < kDotsAcross; ++x) {
        if (grid.at(column * kDotsAcross + x, row * kDotsDown + y)) {
          bits |= kDotBits[static_cast<size_t>(y)][static_cast<size_t>(x)];
        }
      }
    }
    text += bits == 0 ? " " : Utf8Of(0x2800 | bits);
  }
  return text;
}

std::string StarRow(const Grid& grid, int row, int columns) {
  std::string text;
  for (int column = 0; column < columns; ++column) text += grid.at(column, row) ? '*' : ' ';
  return text;
}

std::string WithoutTrailingBlanks(std::string text) {
  text.erase(text.find_last_not_of(' ') + 1);
  return text;
}

std::string Number(double value) { return fmt::format("{:.4g}", value); }

// The value beside a row of the plot: at the top, in the middle and at the bottom.
std::string LabelOf(int row, const Range& y) {
  if (y.high == y.low) return row == kRows / 2 ? Number(y.low) : "";
  if (row == 0) return Number(y.high);
  if (row == kRows - 1) return Number(y.low);
  return "";
}

int LabelWidth(const Range& y) {
  int width = 0;
  for (int row = 0; row < kRows; ++row) width = std::max(width, static_cast<int>(LabelOf(row, y).size()));
  return width;
}

std::string Axis(const Marks& marks, int indent, int columns) {
  std::string axis = fmt::format("{:{}}{}", "", indent, marks.corner);
  for (int i = 0; i < columns; ++i) axis += marks.horizontal;
  return axis + "\n";
}

// The first and last x under the ends of the axis, its name between them.
std::string AxisLabels(const Range& x, const std::string& name, int indent, int columns) {
  const std::string low = Number(x.low);
  const std::string high = x.high > x.low ? Number(x.high) : "";
  const int between = columns - static_cast<int>(low.size() + high.size());
  return WithoutTrailingBlanks(fmt::format("{:{}}{}{:^{}}{}", "", indent + 1, low, name, std::max(between, 0), high)) +
         "\n";
}

}  // namespace

std::string Plot(const PlotSpec& spec, const Terminal& terminal) {
  const std::vector<PlotPoint> points = FiniteOf(spec.points);
  if (points.empty()) return fmt::format("{}: no finite value\n", spec.title);
  const Ranges ranges = RangesOf(points);
  const int indent = LabelWidth(ranges.y) + 1;
  const int width = std::min(terminal.columns > 0 ? terminal.columns : kDefaultColumns, kMostColumns);
  const int columns = std::max(width - indent - 1, kFewestPlotColumns);
  const bool braille = terminal.utf8;
  Grid grid(braille ? columns * kDotsAcross : columns, braille ? kRows * kDotsDown : kRows);
  Draw(points, ranges, grid);

  const Marks& marks = braille ? kLines : kAscii;
  const std::string newest = fmt::format("{} at {} {}", Number(points.back().y), spec.x_label, Number(points.back().x));
  const std::string title = FitWidth(spec.title, width);
  const std::string rest = FitWidth("  " + newest, width - DisplayWidth(title));
  std::string plot = fmt::format("{}{}\n", Paint(title, Color::kBold, terminal.colors), rest);
  for (int row = 0; row < kRows; ++row) {
    const std::string line = braille ? BrailleRow(grid, row, columns) : StarRow(grid, row, columns);
    plot +=
        fmt::format("{:>{}} {}{}\n", LabelOf(row, ranges.y), indent - 1, marks.vertical, WithoutTrailingBlanks(line));
  }
  return plot + Axis(marks, indent, columns) + AxisLabels(ranges.x, spec.x_label, indent, columns);
}

}  // namespace tp::cli
