// tp: the command line of the platform.
#include <algorithm>
#include <cstdlib>
#include <map>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "base/status.h"
#include "cli/arguments.h"
#include "cli/commands/commands.h"
#include "cli/context.h"
#include "cli/render/text.h"

namespace tp::cli {
namespace {

const std::map<std::string, OutputFormat>& OutputFormats() {
  static const std::map<std::string, OutputFormat> formats = {
      {"table", OutputFormat::kTable}, {"wide", OutputFormat::kWide}, {"json", OutputFormat::kJson},
      {"yaml", OutputFormat::kYaml},   {"name", OutputFormat::kName}, {"csv", OutputFormat::kCsv}};
  return formats;
}

void AddGlobalFlags(CLI::App& app, Context& context) {
  app.add_option("--server", context.globals.server,
                 "host:port, https://host:port or unix:/path (default: TP_SERVER, else the tpd of this machine)");
  app.add_option("-o,--output", context.globals.output, "table, wide, json, yaml or name; csv for usage")
      ->transform(CLI::CheckedTransformer(OutputFormats()).description(""))
      ->type_name("FORMAT");
  app.add_flag("--no-color", context.globals.no_color, "No colours (as with NO_COLOR set)");
  app.add_flag("-q,--quiet", context.globals.quiet, "Only results and errors");
}

void BuildParser(CLI::App& app, Context& context) {
  app.name("tp");
  app.description("Run jobs on the cluster. Ids go to stdout, talk to stderr; `tp COMMAND --help` tells more.");
  app.require_subcommand(1);
  app.fallthrough();
  app.set_help_all_flag();
  AddGlobalFlags(app, context);
  AddSubmitCommand(app, context);
  AddRunCommands(app, context);
  AddLogCommands(app, context);
  AddControlCommands(app, context);
  AddResultCommands(app, context);
  AddUsageCommands(app, context);
  AddEventCommands(app, context);
  AddRegistryCommands(app, context);
  AddSystemCommands(app, context);
}

std::vector<std::string> CommandNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands(nullptr)) {
    names.push_back(command->get_name());
    names.insert(names.end(), command->get_aliases().begin(), command->get_aliases().end());
  }
  return names;
}

constexpr int kUnexpectedArguments = static_cast<int>(CLI::ExitCodes::ExtrasError);

// The parser's own words, or better ones where the mistake is a common one.
std::string Explain(const CLI::App& app, const CLI::ParseError& error, const Arguments& arguments) {
  const std::vector<CLI::App*> chosen = app.get_subcommands();
  if (chosen.empty()) {
    const std::vector<std::string> unknown = app.remaining();
    for (const std::string& word : arguments.own) {
      if (std::find(unknown.begin(), unknown.end(), word) == unknown.end()) continue;
      const std::optional<std::string> meant = NearMiss(word, CommandNames(app));
      return meant ? fmt::format("no command {}; did you mean {}?", word, *meant)
                   : fmt::format("no command {}; tp --help lists them", word);
    }
    return "a command is missing; tp --help lists them";
  }
  if (chosen.front()->get_name() == "submit" && !arguments.has_command &&
      error.get_exit_code() == kUnexpectedArguments) {
    return "the job's command goes behind --, as in: tp submit --profile h200:8 -- python3 train.py";
  }
  return std::string(error.what()) + fmt::format("; see tp {} --help", chosen.front()->get_name());
}

absl::Status CheckCombination(const CLI::App& app, const Context& context) {
  const std::string name = app.get_subcommands().front()->get_name();
  if (context.has_command && name != "submit") return InvalidArgument("-- and a command belong to tp submit");
  if (context.globals.output == OutputFormat::kCsv && name != "usage") {
    return InvalidArgument("-o csv belongs to tp usage; use table, wide, json, yaml or name");
  }
  return absl::OkStatus();
}

ExitCode Run(Context& context) {
  absl::StatusOr<ExitCode> code = context.action(context);
  if (const absl::Status written = context.Flush(); code.ok() && !written.ok()) code = written;
  if (code.ok()) return *code;
  context.Report(code.status());
  return ExitCodeOf(code.status().code());
}

ExitCode Main(int argc, const char* const* argv) {
  UseUtf8Locale();
  // gRPC's own complaints would only double ours.
  ::setenv("GRPC_VERBOSITY", "NONE", 0);
  Context context;
  CLI::App app;
  BuildParser(app, context);
  const Arguments arguments = SplitArguments(argc, argv);
  context.command = arguments.command;
  context.has_command = arguments.has_command;
  try {
    app.parse(std::vector<std::string>(arguments.own.rbegin(), arguments.own.rend()));
  } catch (const CLI::Success& help) {
    return static_cast<ExitCode>(app.exit(help));
  } catch (const CLI::ParseError& error) {
    context.Report(absl::InvalidArgumentError(Explain(app, error, arguments)));
    return ExitCode::kUsage;
  }
  if (const absl::Status status = CheckCombination(app, context); !status.ok()) {
    context.Report(status);
    return ExitCode::kUsage;
  }
  return Run(context);
}

}  // namespace
}  // namespace tp::cli

int main(int argc, char** argv) { return static_cast<int>(tp::cli::Main(argc, argv)); }
