// tp admin, and of it what is about the server as a whole: reload, registry status, receivers, reconcile.
#include <memory>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "absl/time/clock.h"
#include "base/status.h"
#include "cli/answer.h"
#include "cli/collect.h"
#include "cli/commands/commands.h"
#include "cli/render/configuration.h"
#include "cli/render/reconcile.h"

namespace tp::cli {
namespace {

absl::StatusOr<ExitCode> Reload(Context& context, bool dry_run) {
  TP_ASSIGN_OR_RETURN(Client* const client, context.Connect());
  v1::ReloadConfigurationRequest request;
  request.set_dry_run(dry_run);
  request.set_request_id(NewRequestId());
  TP_ASSIGN_OR_RETURN(const v1::ReloadConfigurationResponse response,
                      client->Call(&v1::SystemService::Stub::ReloadConfiguration, request));
  Answer answer;
  answer.table = [&](bool wide) {
    return ReloadPage(response, {.dry_run = dry_run, .wide = wide}, context.terminal());
  };
  answer.fill = [&](Json& document) {
    document["dry_run"] = dry_run;
    document.update(ToJson(response));
  };
  return Show(context, answer);
}

absl::StatusOr<ExitCode> ShowRegistryStatus(Context& context) {
  TP_ASSIGN_OR_RETURN(Client* const client, context.Connect());
  TP_ASSIGN_OR_RETURN(const v1::GetRegistryStatusResponse status,
                      client->Call(&v1::RegistryService::Stub::GetRegistryStatus, v1::GetRegistryStatusRequest()));
  Answer answer;
  answer.table = [&](bool) { return RegistryStatusPage(status, absl::Now()); };
  answer.fill = [&](Json& document) { document.update(ToJson(status)); };
  return Show(context, answer);
}

absl::StatusOr<ExitCode> Reconcile(Context& context, bool dry_run) {
  TP_ASSIGN_OR_RETURN(Client* const client, context.Connect());
  v1::ReconcileRequest request;
  request.set_dry_run(dry_run);
  request.set_request_id(NewRequestId());
  TP_ASSIGN_OR_RETURN(const v1::ReconcileResponse response, client->Call(&v1::SystemService::Stub::Reconcile, request));
  Answer answer;
  answer.table = [&](bool) { return ReconcilePage(response, context.terminal()); };
  answer.fill = [&](Json& document) {
    document["dry_run"] = dry_run;
    document.update(ToJson(response));
  };
  return Show(context, answer);
}

absl::StatusOr<ExitCode> ShowReceivers(Context& context) {
  TP_ASSIGN_OR_RETURN(Client* const client, context.Connect());
  TP_ASSIGN_OR_RETURN(const v1::ListReceiversResponse response,
                      client->Call(&v1::SystemService::Stub::ListReceivers, v1::ListReceiversRequest()));
  Answer answer;
  answer.table = [&](bool) { return ReceiverTable(response, context.terminal(), absl::Now()); };
  answer.fill = [&](Json& document) { document.update(ToJson(response)); };
  answer.names = Collect(response.receivers(), [](const v1::Receiver& receiver) { return receiver.name(); });
  return Show(context, answer);
}

}  // namespace

void AddAdminCommands(CLI::App& app, Context& context) {
  CLI::App* admin = app.add_subcommand("admin", "For the people who run the server");
  admin->require_subcommand(1);
  CLI::App* reload = admin->add_subcommand("reload", "Read tpd.yaml and registry.yaml again: all or nothing");
  auto dry_run = std::make_shared<bool>(false);
  reload->add_flag("--dry-run", *dry_run,
                   "Say what would change, and what would be released, held or paused; change nothing");
  reload->callback([&context, dry_run] { context.action = [dry_run](Context& c) { return Reload(c, *dry_run); }; });
  CLI::App* registry = admin->add_subcommand("registry", "The configuration that is in force");
  registry->require_subcommand(1);
  registry->add_subcommand("status", "Its version, and whether the files say something else")->callback([&context] {
    context.action = ShowRegistryStatus;
  });
  CLI::App* reconcile = admin->add_subcommand("reconcile", "End what engines hold and no live attempt owns");
  auto only_list = std::make_shared<bool>(false);
  reconcile->add_flag("--dry-run", *only_list, "Say what would be ended; end nothing");
  reconcile->callback(
      [&context, only_list] { context.action = [only_list](Context& c) { return Reconcile(c, *only_list); }; });
  admin->add_subcommand("receivers", "Who can be told of runs, and what became of the messages")->callback([&context] {
    context.action = ShowReceivers;
  });
  AddAdminQuotaCommands(*admin, context);
  AddAdminWindowCommands(*admin, context);
  AddAdminNodeCommands(*admin, context);
}

}  // namespace tp::cli
