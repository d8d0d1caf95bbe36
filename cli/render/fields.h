// Lines of a label and a text. Pure.
#pragma once

#include <string>
#include <string_view>

#include "cli/terminal.h"

namespace tp::cli {

// `text` behind `label`, its further lines below its first; `columns` wide, 0: no limit. `text` is escaped
// already.
std::string Hanging(std::string_view label, std::string_view text, int indent, int columns);

// Lines of `label   value`, indented; empty values are left out. Values are escaped here.
class Fields {
 public:
  static constexpr int kLabelColumns = 11;

  Fields(int indent, const Terminal& terminal, int label_columns = kLabelColumns)
      : indent_(indent), columns_(terminal.columns), label_columns_(label_columns) {}

  void Add(std::string_view label, std::string_view value);
  const std::string& text() const { return text_; }

 private:
  const int indent_;
  const int columns_;
  const int label_columns_;
  std::string text_;
};

}  // namespace tp::cli
