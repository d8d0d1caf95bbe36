// The commands, by group. Each function adds its subcommands to the parser; a chosen one leaves its
// work in `context.action`, which runs once all arguments are known.
#pragma once

#include "cli/context.h"

namespace CLI {
class App;
}

namespace tp::cli {

void AddRunCommands(CLI::App& app, Context& context);       // status ls show why
void AddEventCommands(CLI::App& app, Context& context);     // events
void AddSubmitCommand(CLI::App& app, Context& context);     // submit
void AddControlCommands(CLI::App& app, Context& context);   // stop pause resume retry wait
void AddLogCommands(CLI::App& app, Context& context);       // logs
void AddResultCommands(CLI::App& app, Context& context);    // results metrics
void AddUsageCommands(CLI::App& app, Context& context);     // usage
void AddRegistryCommands(CLI::App& app, Context& context);  // profiles series
void AddSystemCommands(CLI::App& app, Context& context);    // whoami version

}  // namespace tp::cli
