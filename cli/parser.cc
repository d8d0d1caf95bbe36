#include "cli/parser.h"

#include <algorithm>
#include <map>
#include <optional>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "base/near_miss.h"
#include "base/status.h"
#include "cli/commands/commands.h"

namespace tp::cli {
namespace {

constexpr int kUnexpectedArguments = static_cast<int>(CLI::ExitCodes::ExtrasError);

const std::map<std::string, OutputFormat>& OutputFormats() {
  static const std::map<std::string, OutputFormat> formats = {
      {"table", OutputFormat::kTable}, {"wide", OutputFormat::kWide}, {"json", OutputFormat::kJson},
      {"yaml", OutputFormat::kYaml},   {"name", OutputFormat::kName}, {"csv", OutputFormat::kCsv}};
  return formats;
}

void AddGlobalFlags(CLI::App& app, Context& context) {
  app.add_option("--server", context.globals.server.server,
                 "host:port, https://host:port or unix:/path (default: TP_SERVER, else the tpd of this machine)");
  app.add_option("--context", context.globals.server.context, "A server by its name in `tp context ls`");
  app.add_option("-o,--output", context.globals.output, "table, wide, json, yaml or name; csv for usage and metrics")
      ->transform(CLI::CheckedTransformer(OutputFormats()).description(""))
      ->type_name("FORMAT");
  app.add_flag("--no-color", context.globals.no_color, "No colours (as with NO_COLOR set)");
  app.add_flag("-q,--quiet", context.globals.quiet, "Only results and errors");
}

bool Contains(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

std::string UnknownCommand(const CLI::App& app, const Arguments& arguments) {
  const std::vector<std::string> unknown = app.remaining();
  for (const std::string& word : arguments.own) {
    if (!Contains(unknown, word)) continue;
    const std::optional<std::string> meant = NearMiss(word, CommandNames(app));
    return meant ? fmt::format("no command {}; did you mean {}?", word, *meant)
                 : fmt::format("no command {}; tp --help lists them", word);
  }
  return "a command is missing; tp --help lists them";
}

std::vector<std::string> FlagNames(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::App* app = &command; app != nullptr; app = app->get_parent()) {
    for (const CLI::Option* option : app->get_options()) {
      for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    }
  }
  return names;
}

// The command that was chosen last, and how it is called with its parents: `results get`.
const CLI::App* Innermost(const CLI::App& app, std::string* path) {
  const CLI::App* command = &app;
  while (!command->get_subcommands().empty()) {
    command = command->get_subcommands().front();
    *path += (path->empty() ? "" : " ") + command->get_name();
  }
  return command;
}

std::optional<std::string> UnknownFlag(const CLI::App& app, const CLI::App& command, const std::string& path) {
  for (const std::string& word : app.remaining(true)) {
    if (word.size() < 2 || word.front() != '-') continue;
    const std::string flag = word.substr(0, word.find('='));
    const std::optional<std::string> meant = NearMiss(flag, FlagNames(command));
    return meant ? fmt::format("tp {} has no flag {}; did you mean {}?", path, flag, *meant)
                 : fmt::format("tp {} has no flag {}; see tp {} --help", path, flag, path);
  }
  return std::nullopt;
}

}  // namespace

void BuildParser(CLI::App& app, Context& context) {
  app.name("tp");
  app.description("Run jobs on the cluster. Ids go to stdout, talk to stderr; `tp COMMAND --help` tells more.");
  app.require_subcommand(1);
  app.fallthrough();
  app.set_help_all_flag();
  AddGlobalFlags(app, context);
  AddSubmitCommand(app, context);
  AddRunCommands(app, context);
  AddQueueCommands(app, context);
  AddLogCommands(app, context);
  AddControlCommands(app, context);
  AddChangeCommands(app, context);
  AddResultCommands(app, context);
  AddMetricCommands(app, context);
  AddUsageCommands(app, context);
  AddEventCommands(app, context);
  AddRegistryCommands(app, context);
  AddWindowCommands(app, context);
  AddSystemCommands(app, context);
  AddAdminCommands(app, context);
  AddContextCommands(app, context);
  AddCompletionCommands(app, context);
}

std::vector<std::string> CommandNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands(nullptr)) {
    names.push_back(command->get_name());
    names.insert(names.end(), command->get_aliases().begin(), command->get_aliases().end());
  }
  return names;
}

std::string Explain(const CLI::App& app, const CLI::ParseError& error, const Arguments& arguments) {
  std::string path;
  const CLI::App* command = Innermost(app, &path);
  if (command == &app) return UnknownCommand(app, arguments);
  if (error.get_exit_code() == kUnexpectedArguments) {
    if (const std::optional<std::string> sentence = UnknownFlag(app, *command, path)) return *sentence;
    if (path == "submit" && !arguments.has_command) {
      return "the job's command goes behind --, as in: tp submit --profile h200:8 -- python3 train.py";
    }
  }
  if (!command->get_subcommands(nullptr).empty() && !app.remaining(true).empty()) {
    const std::string word = app.remaining(true).front();
    const std::optional<std::string> meant = NearMiss(word, CommandNames(*command));
    if (meant) return fmt::format("no command tp {} {}; did you mean {}?", path, word, *meant);
  }
  return std::string(error.what()) + fmt::format("; see tp {} --help", path);
}

absl::Status CheckCombination(const CLI::App& app, const Context& context) {
  const std::string name = app.get_subcommands().front()->get_name();
  if (context.has_command && name != "submit" && name != "clone") {
    return InvalidArgument("-- and a command belong to tp submit and tp clone");
  }
  if (context.globals.output == OutputFormat::kCsv && name != "usage" && name != "metrics") {
    return InvalidArgument("-o csv belongs to tp usage and tp metrics; use table, wide, json, yaml or name");
  }
  return absl::OkStatus();
}

}  // namespace tp::cli
