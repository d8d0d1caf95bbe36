// Columns of text. Cells may hold anything: they are escaped here. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/render/color.h"
#include "cli/terminal.h"

namespace tp::cli {

enum class Align : uint8_t { kLeft, kRight };

struct Column {
  std::string header;
  Align align = Align::kLeft;
  // Gives way first where the terminal is too narrow.
  bool flexible = false;
  // Left out where there is no room for it, the highest number first; 0: never.
  int spare = 0;
};

struct Cell {
  std::string text;
  Color color = Color::kNone;
};

class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  // One cell a column; an empty one shows as `-`.
  void AddRow(std::vector<Cell> cells);
  bool empty() const { return rows_.empty(); }

  // Ends in a newline. Cells are cut only where `terminal` has a width.
  std::string Render(const Terminal& terminal) const;

 private:
  std::vector<int> NaturalWidths() const;
  // Without the spare columns that there is no room for.
  Table Fitting(int width) const;
  std::string RenderAll(const Terminal& terminal) const;

  std::vector<Column> columns_;
  std::vector<std::vector<Cell>> rows_;
};

}  // namespace tp::cli
