// The whole command line of `tp`, as CLI11 reads it, and what is said when it can't.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "cli/arguments.h"
#include "cli/context.h"

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace tp::cli {

// All commands and flags. `context` outlives `app`.
void BuildParser(CLI::App& app, Context& context);

// The parser's own words, or better ones where the mistake is a common one.
std::string Explain(const CLI::App& app, const CLI::ParseError& error, const Arguments& arguments);

// What no single flag can tell, once all are read.
absl::Status CheckCombination(const CLI::App& app, const Context& context);

// Names with their aliases, those that help shows.
std::vector<std::string> CommandNames(const CLI::App& app);

}  // namespace tp::cli
