// tp context: servers by name.
#include <iostream>
#include <memory>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/status.h"
#include "cli/answer.h"
#include "cli/commands/commands.h"
#include "cli/contexts.h"
#include "cli/render/table.h"
#include "cli/render/text.h"

namespace tp::cli {
namespace {

absl::StatusOr<ExitCode> ListContexts(Context& context) {
  TP_ASSIGN_OR_RETURN(const Contexts contexts, LoadContexts(ContextsFile()));
  Answer answer;
  answer.names.emplace();
  for (const auto& [name, server] : contexts.servers) answer.names->push_back(name);
  answer.table = [&](bool) {
    if (contexts.servers.empty()) context.Say("no contexts; tp context add NAME --server ADDRESS adds one");
    Table table({{"IN USE"}, {"NAME"}, {"SERVER"}, {"TOKEN FILE", Align::kLeft, true}});
    for (const auto& [name, server] : contexts.servers) {
      table.AddRow({{name == contexts.current ? "*" : " "}, {name}, {server.address}, {server.token_file}});
    }
    return table.empty() ? std::string() : table.Render(context.terminal());
  };
  answer.fill = [&](Json& document) {
    document["current"] = contexts.current.empty() ? Json() : Json(contexts.current);
    document["contexts"] = Json::array();
    for (const auto& [name, server] : contexts.servers) {
      document["contexts"].push_back(
          {{"name", name}, {"server", server.address}, {"token_file", server.token_file}, {"ca_file", server.ca_file}});
    }
  };
  return Show(context, answer);
}

// What was done, with the name on stdout as every changing command has it.
absl::StatusOr<ExitCode> Done(Context& context, const std::string& name, const std::string& sentence) {
  context.Say(sentence);
  Answer answer;
  answer.table = [&](bool) { return EscapeControl(name) + "\n"; };
  answer.fill = [&](Json& document) { document["context"] = name; };
  answer.names = std::vector<std::string>{name};
  return Show(context, answer);
}

absl::StatusOr<ExitCode> UseContext(Context& context, const std::string& name) {
  TP_ASSIGN_OR_RETURN(Contexts contexts, LoadContexts(ContextsFile()));
  TP_ASSIGN_OR_RETURN(const NamedServer server, FindContext(contexts, name));
  contexts.current = name;
  TP_RETURN_IF_ERROR(SaveContexts(ContextsFile(), contexts));
  return Done(context, name, fmt::format("tp talks to {} from now on", server.address));
}

struct AddFlags {
  std::string name;
  NamedServer server;
  bool token_stdin = false;
  bool use = false;
};

absl::StatusOr<ExitCode> AddContext(Context& context, const AddFlags& flags) {
  TP_RETURN_IF_ERROR(CheckContextName(flags.name));
  TP_RETURN_IF_ERROR(ParseAddress(flags.server.address).status());
  TP_ASSIGN_OR_RETURN(Contexts contexts, LoadContexts(ContextsFile()));
  NamedServer server = flags.server;
  if (flags.token_stdin) {
    std::string token;
    std::getline(std::cin, token);
    TP_ASSIGN_OR_RETURN(token, CheckToken(token, "stdin"));
    TP_ASSIGN_OR_RETURN(server.token_file, StoreToken(ContextsFile(), flags.name, token));
  } else if (!server.token_file.empty()) {
    TP_RETURN_IF_ERROR(ReadTokenFile(server.token_file).status());
  }
  contexts.servers[flags.name] = server;
  if (flags.use || contexts.servers.size() == 1) contexts.current = flags.name;
  TP_RETURN_IF_ERROR(SaveContexts(ContextsFile(), contexts));
  return Done(context, flags.name,
              contexts.current == flags.name ? fmt::format("tp talks to {} from now on", server.address)
                                             : fmt::format("tp context use {} makes tp talk to it", flags.name));
}

absl::StatusOr<ExitCode> RemoveContext(Context& context, const std::string& name) {
  TP_ASSIGN_OR_RETURN(Contexts contexts, LoadContexts(ContextsFile()));
  TP_RETURN_IF_ERROR(FindContext(contexts, name).status());
  contexts.servers.erase(name);
  const bool was_current = contexts.current == name;
  if (was_current) contexts.current.clear();
  TP_RETURN_IF_ERROR(SaveContexts(ContextsFile(), contexts));
  return Done(context, name, was_current ? "removed; tp talks to the tpd of this machine from now on" : "removed");
}

void AddAdd(CLI::App& contexts, Context& context) {
  auto flags = std::make_shared<AddFlags>();
  CLI::App* command = contexts.add_subcommand("add", "Add a server, or change it");
  command->add_option("NAME", flags->name, "What you call it")->required();
  command->add_option("--server", flags->server.address, "host:port, https://host:port or unix:/path")->required();
  command->add_option("--token-file", flags->server.token_file, "File that holds your token (mode 0600)");
  command->add_flag("--token-stdin", flags->token_stdin, "Read the token from stdin, and keep it (mode 0600)")
      ->excludes("--token-file");
  command->add_option("--ca-file", flags->server.ca_file, "The certificate authority of the server, PEM");
  command->add_flag("--use", flags->use, "And use it from now on");
  command->callback([&context, flags] { context.action = [flags](Context& c) { return AddContext(c, *flags); }; });
}

using OnName = absl::StatusOr<ExitCode> (*)(Context&, const std::string&);

void AddOnName(CLI::App& contexts, Context& context, const char* verb, const char* description, OnName run) {
  auto name = std::make_shared<std::string>();
  CLI::App* command = contexts.add_subcommand(verb, description);
  command->add_option("CONTEXT", *name, "As `tp context ls` names it")->required();
  command->callback([&context, name, run] { context.action = [name, run](Context& c) { return run(c, *name); }; });
}

}  // namespace

void AddContextCommands(CLI::App& app, Context& context) {
  CLI::App* contexts = app.add_subcommand("context", "Servers by name: --context NAME and TP_CONTEXT pick one");
  contexts->require_subcommand(1);
  contexts->add_subcommand("ls", "List them")->callback([&context] { context.action = ListContexts; });
  AddOnName(*contexts, context, "use", "Talk to this server from now on", UseContext);
  AddAdd(*contexts, context);
  AddOnName(*contexts, context, "rm", "Forget a server", RemoveContext);
}

}  // namespace tp::cli
