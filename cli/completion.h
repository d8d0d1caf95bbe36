// What may stand at the cursor of a command line, for the shells (tp completion). Commands and flags are
// known here; runs, profiles and result files are asked of the server, which must answer within a second
// or there are none: a shell never hangs, nor shows an error, because of us.
#pragma once

#include <string>
#include <vector>

#include "cli/context.h"

namespace CLI {
class App;
}

namespace tp::cli {

// `words` are those after `tp` up to the cursor, the last one begun or empty. One candidate a line,
// `VALUE<TAB>DESCRIPTION`, or the one line `:files` or `:directories`: the shell knows those itself.
std::string Complete(const CLI::App& app, Context& context, const std::vector<std::string>& words);

}  // namespace tp::cli
