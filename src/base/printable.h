// Foreign text inside our sentences: whatever it holds, it cannot steer a terminal or a log.
#pragma once

#include <string>
#include <string_view>

#include <fmt/format.h>

#include "base/utf8.h"

namespace tp {

// `text` in single quotes; control characters and bytes that are not UTF-8 as \xNN, cut after 80 bytes.
inline std::string Quoted(std::string_view text) {
  constexpr size_t kLongest = 80;
  std::string out = "'";
  size_t at = 0;
  while (at < text.size() && at < kLongest) {
    const size_t length = Utf8SequenceLength(text, at);
    const auto byte = static_cast<unsigned char>(text[at]);
    // C1 controls (U+0080..U+009F) start with C2 and are as dangerous as the ASCII ones.
    const bool c1_control = length == 2 && byte == 0xC2 && static_cast<unsigned char>(text[at + 1]) < 0xA0;
    if (length == 0 || byte < 0x20 || byte == 0x7F || c1_control) {
      out += fmt::format("\\x{:02x}", byte);
      at += 1;
    } else {
      out.append(text.substr(at, length));
      at += length;
    }
  }
  out += at < text.size() ? "...'" : "'";
  return out;
}

}  // namespace tp
