// What a shell hands to `tp`, before the parser sees it. Pure.
#pragma once

#include <string>
#include <vector>

namespace tp::cli {

struct Arguments {
  std::vector<std::string> own;      // without the program's name
  std::vector<std::string> command;  // what stood behind the first `--`
  bool has_command = false;
};

// The parser would read `[1,2]` in a job's command as a list, and its flags as ours: it never sees it.
Arguments SplitArguments(int argc, const char* const* argv);

}  // namespace tp::cli
