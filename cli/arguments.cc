#include "cli/arguments.h"

#include <string_view>

namespace tp::cli {

Arguments SplitArguments(int argc, const char* const* argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (arguments.has_command) {
      arguments.command.emplace_back(word);
    } else if (word == "--") {
      arguments.has_command = true;
    } else {
      arguments.own.emplace_back(word);
    }
  }
  return arguments;
}

}  // namespace tp::cli
