// Plain tables of text: a header, then rows of as many cells, separated by commas; no quotes. Their numbers
// are read strictly.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "decode/problem.h"

namespace tp::simulate {

// Takes the text up to the next newline off the front; without a carriage return at its end.
std::string_view TakeLine(std::string_view& text);

struct CsvRow {
  int line = 0;
  std::vector<std::string_view> cells;  // of the wanted columns, in their order
};

// `text` outlives the rows. A missing column or a row of another length adds to `problems`.
std::vector<CsvRow> ReadCsv(std::string_view text, const std::vector<std::string>& columns, decode::Problems& problems);

// A whole number from `min` to `max`; decimals after it are read and dropped, as traces write whole numbers
// as 12.0. Nothing for anything else.
std::optional<int64_t> WholeNumber(std::string_view text, int64_t min, int64_t max);

}  // namespace tp::simulate
