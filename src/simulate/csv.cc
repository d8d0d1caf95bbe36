#include "simulate/csv.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "base/printable.h"

namespace tp::simulate {
namespace {

std::vector<std::string_view> Cells(std::string_view line) {
  std::vector<std::string_view> cells;
  for (;;) {
    const size_t comma = line.find(',');
    cells.push_back(line.substr(0, comma));
    if (comma == std::string_view::npos) return cells;
    line.remove_prefix(comma + 1);
  }
}

// Where each wanted column is.
std::vector<size_t> FindColumns(const std::vector<std::string_view>& header, const std::vector<std::string>& columns,
                                decode::Problems& problems) {
  std::vector<size_t> places;
  for (const std::string& column : columns) {
    const auto found = std::find(header.begin(), header.end(), column);
    if (found == header.end()) {
      problems.Add({1, 1}, fmt::format("the header has no column {}", column));
    } else {
      places.push_back(static_cast<size_t>(found - header.begin()));
    }
  }
  return places;
}

}  // namespace

std::string_view TakeLine(std::string_view& text) {
  const size_t newline = text.find('\n');
  std::string_view line = text.substr(0, newline);
  text.remove_prefix(newline == std::string_view::npos ? text.size() : newline + 1);
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  return line;
}

std::vector<CsvRow> ReadCsv(std::string_view text, const std::vector<std::string>& columns,
                            decode::Problems& problems) {
  const std::vector<std::string_view> header = Cells(TakeLine(text));
  const std::vector<size_t> places = FindColumns(header, columns, problems);
  std::vector<CsvRow> rows;
  if (problems.any()) return rows;
  for (int line = 2; !text.empty(); ++line) {
    const std::vector<std::string_view> cells = Cells(TakeLine(text));
    if (cells.size() != header.size()) {
      problems.Add({line, 1}, fmt::format("{} cells, and the header has {}", cells.size(), header.size()));
      continue;
    }
    CsvRow& row = rows.emplace_back();
    row.line = line;
    for (const size_t place : places) row.cells.push_back(cells[place]);
  }
  return rows;
}

std::optional<int64_t> WholeNumber(std::string_view text, int64_t min, int64_t max) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || number < min || number > max) return std::nullopt;
  const std::string_view rest(end, static_cast<size_t>(text.data() + text.size() - end));
  const bool decimals =
      rest.size() > 1 && rest[0] == '.' && rest.find_first_not_of("0123456789", 1) == std::string_view::npos;
  if (!rest.empty() && !decimals) return std::nullopt;
  return number;
}

}  // namespace tp::simulate
