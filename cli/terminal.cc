#include "cli/terminal.h"

#include <cstdlib>
#include <string_view>

#include "cli/variable.h"

#include <sys/ioctl.h>
#include <unistd.h>

namespace tp::cli {
namespace {

constexpr int kDefaultColumns = 80;

winsize SizeOf(int fd) {
  winsize size{};
  if (::ioctl(fd, TIOCGWINSZ, &size) != 0) return {};
  return size;
}

int WidthOf(const winsize& size) {
  if (size.ws_col > 0) return size.ws_col;
  const int columns = std::atoi(Variable("COLUMNS").data());
  return columns > 0 ? columns : kDefaultColumns;
}

// The first of these that is set counts, as for the C library.
bool IsUtf8Locale() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const std::string value = Variable(name);
    if (value.empty()) continue;
    return value.find("UTF-8") != std::string_view::npos || value.find("utf8") != std::string_view::npos;
  }
  return false;
}

}  // namespace

Terminal DescribeTerminal(int fd, bool no_color) {
  const bool dumb = Variable("TERM") == "dumb";
  const bool utf8 = !dumb && IsUtf8Locale();
  if (::isatty(fd) == 0) return {.utf8 = utf8};
  const winsize size = SizeOf(fd);
  return {.is_tty = true,
          .columns = WidthOf(size),
          .colors = !no_color && !dumb && Variable("NO_COLOR").empty(),
          .rows = size.ws_row,
          .utf8 = utf8};
}

}  // namespace tp::cli
