#include "cli/terminal.h"

#include <cstdlib>
#include <string_view>

#include <sys/ioctl.h>
#include <unistd.h>

namespace tp::cli {
namespace {

constexpr int kDefaultColumns = 80;

std::string_view Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

int WidthOf(int fd) {
  winsize size{};
  if (::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  const int columns = std::atoi(Variable("COLUMNS").data());
  return columns > 0 ? columns : kDefaultColumns;
}

}  // namespace

Terminal DescribeTerminal(int fd, bool no_color) {
  if (::isatty(fd) == 0) return {};
  const bool colors = !no_color && Variable("NO_COLOR").empty() && Variable("TERM") != "dumb";
  return {.is_tty = true, .columns = WidthOf(fd), .colors = colors};
}

}  // namespace tp::cli
