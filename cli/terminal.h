// What a stream can show.
#pragma once

namespace tp::cli {

struct Terminal {
  bool is_tty = false;
  // Width to fit into; 0: no limit, as for pipes and files.
  int columns = 0;
  bool colors = false;
  int rows = 0;       // 0: not known
  bool utf8 = false;  // lines and dots may be drawn with more than ASCII
};

// Honours NO_COLOR, TERM=dumb, the locale's character set and, where the kernel does not know the width,
// COLUMNS.
Terminal DescribeTerminal(int fd, bool no_color);

}  // namespace tp::cli
