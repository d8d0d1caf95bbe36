// JSON out of plain values, for the few places where the core writes some. Pure.
#pragma once

#include <string>
#include <string_view>

#include <fmt/format.h>

#include "base/utf8.h"

namespace tp::core {

// `text` as a JSON string, quotes included. Bytes that are not UTF-8 become U+FFFD, one each: the
// result is valid JSON whatever comes in.
inline std::string JsonString(std::string_view text) {
  std::string out = "\"";
  for (size_t at = 0; at < text.size();) {
    const size_t length = Utf8SequenceLength(text, at);
    const auto byte = static_cast<unsigned char>(text[at]);
    if (length == 0) {
      out += "\xEF\xBF\xBD";
    } else if (byte == '"' || byte == '\\') {
      out += '\\';
      out += static_cast<char>(byte);
    } else if (byte < 0x20 || byte == 0x7F) {
      out += fmt::format("\\u{:04x}", byte);
    } else {
      out.append(text.substr(at, length));
    }
    at += length == 0 ? 1 : length;
  }
  out += '"';
  return out;
}

}  // namespace tp::core
