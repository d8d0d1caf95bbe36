#include "cli/render/fields.h"

#include <algorithm>

#include <fmt/format.h>

#include "cli/render/text.h"

namespace tp::cli {

std::string Hanging(std::string_view label, std::string_view text, int indent, int columns) {
  const int width = indent + DisplayWidth(label) + 1;
  std::string out;
  for (const std::string& line : WrapWidth(text, columns > 0 ? std::max(columns - width, 1) : 0)) {
    out +=
        out.empty() ? fmt::format("{:{}}{} {}\n", "", indent, label, line) : fmt::format("{:{}}{}\n", "", width, line);
  }
  return out;
}

void Fields::Add(std::string_view label, std::string_view value) {
  if (value.empty()) return;
  text_ += Hanging(fmt::format("{:<{}}", label, label_columns_), EscapeControl(value), indent_, columns_);
}

}  // namespace tp::cli
