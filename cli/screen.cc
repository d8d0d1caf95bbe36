#include "cli/screen.h"

#include <vector>

#include <fmt/format.h>

#include "cli/write_all.h"

namespace tp::cli {
namespace {

constexpr std::string_view kEnter = "\x1b[?1049h\x1b[?25l";  // the other screen, no cursor
constexpr std::string_view kLeave = "\x1b[?25h\x1b[?1049l";
constexpr std::string_view kTop = "\x1b[H";
constexpr std::string_view kEndOfLine = "\x1b[K";
constexpr std::string_view kBelow = "\x1b[J";

std::vector<std::string_view> SplitLines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    lines.push_back(text.substr(0, end));
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  }
  return lines;
}

}  // namespace

std::string Picture(std::string_view text, int rows) {
  std::vector<std::string_view> lines = SplitLines(text);
  std::string rest;
  if (const auto room = static_cast<size_t>(rows); rows > 1 && lines.size() > room) {
    rest = fmt::format("and {} more lines", lines.size() - room + 1);
    lines.resize(room - 1);
    lines.emplace_back(rest);
  }
  std::string picture(kTop);
  for (size_t i = 0; i < lines.size(); ++i) {
    picture += fmt::format("{}{}{}", i == 0 ? "" : "\r\n", lines[i], kEndOfLine);
  }
  picture += kBelow;
  return picture;
}

// What cannot be written is seen by the user; there is nobody else to tell.
Screen::Screen(int fd) : fd_(fd) { WriteAll(fd_, kEnter, "the terminal").IgnoreError(); }

Screen::~Screen() { WriteAll(fd_, fmt::format("{}{}", kLeave, shown_), "the terminal").IgnoreError(); }

void Screen::Show(std::string_view text, int rows) {
  shown_ = text;
  WriteAll(fd_, Picture(text, rows), "the terminal").IgnoreError();
}

}  // namespace tp::cli
