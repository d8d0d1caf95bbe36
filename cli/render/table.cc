#include "cli/render/table.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "cli/collect.h"
#include "cli/render/text.h"

namespace tp::cli {
namespace {

constexpr int kGap = 2;
constexpr int kComfortable = 28;
constexpr int kFlexibleMinimum = 12;
constexpr int kMinimum = 4;

int TotalWidth(const std::vector<int>& widths) {
  return std::accumulate(widths.begin(), widths.end(), kGap * (static_cast<int>(widths.size()) - 1));
}

// With room for the gist of what may be cut.
std::vector<int> ComfortableWidths(std::vector<int> widths, const std::vector<Column>& columns) {
  for (size_t i = 0; i < widths.size(); ++i) {
    if (columns[i].flexible) widths[i] = std::min(widths[i], kComfortable);
  }
  return widths;
}

// The widest column that may still shrink.
std::optional<size_t> WidestAbove(const std::vector<int>& widths, const std::vector<Column>& columns, int minimum,
                                  bool flexible_only) {
  std::optional<size_t> widest;
  for (size_t i = 0; i < widths.size(); ++i) {
    if (widths[i] <= minimum || (flexible_only && !columns[i].flexible)) continue;
    if (!widest || widths[i] > widths[*widest]) widest = i;
  }
  return widest;
}

void Shrink(std::vector<int>& widths, const std::vector<Column>& columns, int limit, int minimum, bool flexible_only) {
  while (TotalWidth(widths) > limit) {
    const std::optional<size_t> widest = WidestAbove(widths, columns, minimum, flexible_only);
    if (!widest) return;
    --widths[*widest];
  }
}

std::string Aligned(std::string_view text, int width, Align align, bool last, Color color, bool colors) {
  const std::string fitted = FitWidth(text, width);
  const std::string padding(static_cast<size_t>(std::max(0, width - DisplayWidth(fitted))), ' ');
  const std::string painted = Paint(fitted, color, colors);
  if (align == Align::kRight) return padding + painted;
  return last ? painted : painted + padding;
}

}  // namespace

void Table::AddRow(std::vector<Cell> cells) {
  cells.resize(columns_.size());
  for (Cell& cell : cells) {
    cell.text = cell.text.empty() ? "-" : EscapeControl(cell.text);
  }
  rows_.push_back(std::move(cells));
}

std::vector<int> Table::NaturalWidths() const {
  std::vector<int> widths = Collect(columns_, [](const Column& column) { return DisplayWidth(column.header); });
  for (const auto& row : rows_) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], DisplayWidth(row[i].text));
  }
  return widths;
}

Table Table::Fitting(int width) const {
  Table fitting = *this;
  while (TotalWidth(ComfortableWidths(fitting.NaturalWidths(), fitting.columns_)) > width) {
    const auto most = std::max_element(fitting.columns_.begin(), fitting.columns_.end(),
                                       [](const Column& a, const Column& b) { return a.spare < b.spare; });
    if (most == fitting.columns_.end() || most->spare == 0) break;
    const auto index = most - fitting.columns_.begin();
    fitting.columns_.erase(most);
    for (auto& row : fitting.rows_) row.erase(row.begin() + index);
  }
  return fitting;
}

std::string Table::Render(const Terminal& terminal) const {
  return terminal.columns > 0 ? Fitting(terminal.columns).RenderAll(terminal) : RenderAll(terminal);
}

std::string Table::RenderAll(const Terminal& terminal) const {
  std::vector<int> widths = NaturalWidths();
  if (terminal.columns > 0) {
    Shrink(widths, columns_, terminal.columns, kFlexibleMinimum, true);
    Shrink(widths, columns_, terminal.columns, kMinimum, false);
  }
  std::string out;
  const auto append = [&](size_t i, std::string_view text, Color color) {
    const bool last = i + 1 == columns_.size();
    out += Aligned(text, widths[i], columns_[i].align, last, color, terminal.colors);
    out += last ? "\n" : std::string(kGap, ' ');
  };
  for (size_t i = 0; i < columns_.size(); ++i) append(i, columns_[i].header, Color::kBold);
  for (const auto& row : rows_) {
    for (size_t i = 0; i < row.size(); ++i) append(i, row[i].text, row[i].color);
  }
  return out;
}

}  // namespace tp::cli
