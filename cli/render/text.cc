#include "cli/render/text.h"

#include <algorithm>
#include <clocale>
#include <cwchar>

#include <fmt/format.h>

namespace tp::cli {
namespace {

struct Decoded {
  char32_t code = 0;
  size_t length = 1;
  bool valid = false;
};

bool IsContinuation(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

// How long a sequence its first byte announces, and the smallest code that needs that length.
struct Lead {
  size_t length;
  char32_t bits;
  char32_t smallest;
};

Lead LeadOf(unsigned char byte) {
  if (byte < 0x80) return {1, byte, 0};
  if ((byte & 0xE0) == 0xC0) return {2, byte & 0x1FU, 0x80};
  if ((byte & 0xF0) == 0xE0) return {3, byte & 0x0FU, 0x800};
  if ((byte & 0xF8) == 0xF0) return {4, byte & 0x07U, 0x10000};
  return {0, 0, 0};
}

// `text` is not empty.
Decoded Decode(std::string_view text) {
  const Lead lead = LeadOf(static_cast<unsigned char>(text.front()));
  if (lead.length == 0 || text.size() < lead.length) return {};
  char32_t code = lead.bits;
  for (size_t i = 1; i < lead.length; ++i) {
    if (!IsContinuation(text[i])) return {};
    code = (code << 6) | (static_cast<unsigned char>(text[i]) & 0x3FU);
  }
  const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  if (code < lead.smallest || code > 0x10FFFF || surrogate) return {};
  return {code, lead.length, true};
}

bool IsControl(char32_t code) { return code < 0x20 || (code >= 0x7F && code <= 0x9F); }

// Invisible characters that reorder, split or hide what stands next to them.
bool IsDeceptive(char32_t code) {
  return code == 0x200B || code == 0x200E || code == 0x200F || (code >= 0x2028 && code <= 0x202E) ||
         (code >= 0x2066 && code <= 0x2069) || code == 0xFEFF;
}

void AppendEscaped(std::string& out, char32_t code) {
  if (code == '\n') {
    out += "\\n";
  } else if (code == '\t') {
    out += "\\t";
  } else if (code == '\r') {
    out += "\\r";
  } else if (code < 0x80) {
    out += fmt::format("\\x{:02x}", static_cast<unsigned>(code));
  } else {
    out += fmt::format("\\u{:04x}", static_cast<unsigned>(code));
  }
}

int WidthOf(char32_t code) { return std::max(0, ::wcwidth(static_cast<wchar_t>(code))); }

}  // namespace

void UseUtf8Locale() { std::setlocale(LC_CTYPE, "C.UTF-8"); }

bool IsUtf8(std::string_view text) {
  while (!text.empty()) {
    const Decoded next = Decode(text);
    if (!next.valid) return false;
    text.remove_prefix(next.length);
  }
  return true;
}

std::string EscapeControl(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Decoded next = Decode(text);
    if (!next.valid) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(text.front()));
    } else if (IsControl(next.code) || IsDeceptive(next.code)) {
      AppendEscaped(out, next.code);
    } else {
      out += text.substr(0, next.length);
    }
    text.remove_prefix(next.length);
  }
  return out;
}

int DisplayWidth(std::string_view utf8) {
  int columns = 0;
  while (!utf8.empty()) {
    const Decoded next = Decode(utf8);
    columns += next.valid ? WidthOf(next.code) : 1;
    utf8.remove_prefix(next.length);
  }
  return columns;
}

std::string FitWidth(std::string_view utf8, int columns) {
  if (DisplayWidth(utf8) <= columns) return std::string(utf8);
  if (columns <= 0) return "";
  std::string out;
  int used = 0;
  while (!utf8.empty()) {
    const Decoded next = Decode(utf8);
    const int width = next.valid ? WidthOf(next.code) : 1;
    if (used + width > columns - 1) break;
    out += utf8.substr(0, next.length);
    used += width;
    utf8.remove_prefix(next.length);
  }
  return out + "…";
}

std::vector<std::string> WrapWidth(std::string_view utf8, int columns) {
  std::vector<std::string> lines;
  while (columns > 0 && DisplayWidth(utf8) > columns) {
    size_t end = 0;
    size_t last_blank = 0;
    for (int used = 0; end < utf8.size();) {
      const Decoded next = Decode(utf8.substr(end));
      used += next.valid ? WidthOf(next.code) : 1;
      if (utf8[end] == ' ') last_blank = end;
      if (used > columns) break;
      end += next.length;
    }
    const size_t cut = last_blank > 0 ? last_blank : std::max<size_t>(end, 1);
    lines.emplace_back(utf8.substr(0, cut));
    utf8.remove_prefix(last_blank > 0 ? cut + 1 : cut);
  }
  lines.emplace_back(utf8);
  return lines;
}

}  // namespace tp::cli
