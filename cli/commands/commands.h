// The commands, by group. Each function adds its subcommands to the parser; a chosen one leaves its
// work in `context.action`, which runs once all arguments are known.
#pragma once

#include "cli/context.h"

namespace CLI {
class App;
}

namespace tp::cli {

struct ListFlags;

// --user, -A, --project, --state and --label, as every command has them that speaks of several runs.
void AddFilterFlags(CLI::App& command, ListFlags& flags);

void AddRunCommands(CLI::App& app, Context& context);         // status ls show
void AddQueueCommands(CLI::App& app, Context& context);       // queue why
void AddSubmitCommand(CLI::App& app, Context& context);       // submit
void AddChangeCommands(CLI::App& app, Context& context);      // clone update
void AddControlCommands(CLI::App& app, Context& context);     // stop pause resume retry rm hold release wait
void AddEventCommands(CLI::App& app, Context& context);       // events
void AddLogCommands(CLI::App& app, Context& context);         // logs
void AddResultCommands(CLI::App& app, Context& context);      // results
void AddMetricCommands(CLI::App& app, Context& context);      // metrics
void AddUsageCommands(CLI::App& app, Context& context);       // usage
void AddRegistryCommands(CLI::App& app, Context& context);    // profiles series
void AddWindowCommands(CLI::App& app, Context& context);      // windows
void AddSystemCommands(CLI::App& app, Context& context);      // whoami version
void AddContextCommands(CLI::App& app, Context& context);     // context
void AddCompletionCommands(CLI::App& app, Context& context);  // completion
void AddAdminCommands(CLI::App& app, Context& context);       // admin reload, registry, quota, window

// Below `admin`.
void AddAdminQuotaCommands(CLI::App& admin, Context& context);   // quota set show list unset
void AddAdminWindowCommands(CLI::App& admin, Context& context);  // window hold-open
void AddAdminNodeCommands(CLI::App& admin, Context& context);    // nodes, node drain undrain dead

}  // namespace tp::cli
