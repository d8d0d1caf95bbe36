// tp logs.
#include <memory>

#include <CLI/CLI.hpp>

#include "base/status.h"
#include "cli/commands/commands.h"
#include "cli/follow.h"
#include "cli/ranks.h"

namespace tp::cli {
namespace {

struct LogFlags {
  std::string run;
  LogOptions options;
  std::vector<std::string> ranks;
  bool exit_status = false;
};

absl::StatusOr<ExitCode> Logs(Context& context, const LogFlags& flags) {
  LogOptions options = flags.options;
  TP_ASSIGN_OR_RETURN(options.ranks, ParseRanks(flags.ranks));
  TP_ASSIGN_OR_RETURN(const ExitCode code, PrintLog(context, flags.run, options));
  if (!flags.exit_status || code != ExitCode::kOk) return code;
  TP_ASSIGN_OR_RETURN(Client* const client, context.Connect());
  TP_ASSIGN_OR_RETURN(const v1::Run run, FetchRun(*client, flags.run));
  return ExitCodeOf(run.state());
}

}  // namespace

void AddLogCommands(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand("logs", "What a run wrote, byte for byte");
  auto flags = std::make_shared<LogFlags>();
  LogOptions& options = flags->options;
  command->add_option("RUN", flags->run, "42, train-42 or @last")->required();
  command->add_flag("-f,--follow", options.follow, "Go on until the run is over; Ctrl-C leaves the run alone");
  command->add_option("--rank", flags->ranks, "RANK, POOL-RANK or all (default: 0-0); may be repeated")
      ->allow_extra_args(false)
      ->delimiter(',');
  command->add_option("--attempt", options.attempt, "This attempt (default: the newest)")->check(CLI::PositiveNumber);
  command->add_option("--step", options.step, "This step, counted from 1 (default: all; with --tail the newest)")
      ->check(CLI::PositiveNumber);
  command->add_option("--tail", options.tail_lines, "Only the last N lines of each rank")
      ->check(CLI::NonNegativeNumber);
  command->add_flag("--system", options.system, "What tp's runner said, in place of the job's output");
  command->add_flag("--exit-status", flags->exit_status, "With -f: exit as `tp wait` does");
  command->callback([&context, flags] { context.action = [flags](Context& c) { return Logs(c, *flags); }; });
}

}  // namespace tp::cli
