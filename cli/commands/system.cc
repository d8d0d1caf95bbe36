// tp whoami, version.
#include <memory>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/status.h"
#include "cli/answer.h"
#include "cli/commands/commands.h"
#include "cli/render/text.h"
#include "cli/version_skew.h"

namespace tp::cli {
namespace {

absl::StatusOr<ExitCode> ShowWhoAmI(Context& context) {
  TP_ASSIGN_OR_RETURN(Client* const client, context.Connect());
  TP_ASSIGN_OR_RETURN(const v1::WhoAmIResponse me, client->Call(&v1::SystemService::Stub::WhoAmI, v1::WhoAmIRequest()));
  Answer answer;
  answer.table = [&](bool) {
    return EscapeControl(fmt::format("{} ({}) at {}", me.user(), me.role(), client->target())) + "\n";
  };
  answer.fill = [&](Json& document) {
    document["user"] = me.user();
    document["role"] = me.role();
    document["server"] = client->target();
  };
  answer.names = std::vector<std::string>{me.user()};
  return Show(context, answer);
}

absl::StatusOr<ExitCode> ShowClientVersion(const Context& context) {
  Answer answer;
  answer.table = [](bool) { return fmt::format("tp {}\n", ClientVersion()); };
  answer.fill = [](Json& document) { document["client"] = {{"version", std::string(ClientVersion())}}; };
  return Show(context, answer);
}

std::string VersionLines(const v1::GetServerInfoResponse& info) {
  const std::string server =
      fmt::format("tpd {} (deployment {}, epoch {})", info.version(), info.deployment(), info.epoch());
  return fmt::format("tp {}\n{}\n", ClientVersion(), EscapeControl(server));
}

absl::StatusOr<ExitCode> ShowVersions(Context& context) {
  TP_ASSIGN_OR_RETURN(Client* const client, context.Connect());
  TP_ASSIGN_OR_RETURN(const v1::GetServerInfoResponse info,
                      client->Call(&v1::SystemService::Stub::GetServerInfo, v1::GetServerInfoRequest()));
  Answer answer;
  answer.table = [&](bool) { return VersionLines(info); };
  answer.fill = [&](Json& document) {
    document["client"] = {{"version", std::string(ClientVersion())}};
    document["server"] = ToJson(info);
  };
  const absl::StatusOr<ExitCode> code = Show(context, answer);
  if (const auto skew = VersionSkew(ClientVersion(), info.version())) context.Say(*skew);
  return code;
}

}  // namespace

void AddSystemCommands(CLI::App& app, Context& context) {
  app.add_subcommand("whoami", "As whom the server knows you")->callback([&context] { context.action = ShowWhoAmI; });
  CLI::App* version = app.add_subcommand("version", "The versions of tp and of the server");
  auto client_only = std::make_shared<bool>(false);
  version->add_flag("--client", *client_only, "Only of tp; no server is asked");
  version->callback([&context, client_only] {
    context.action = [client_only](Context& c) { return *client_only ? ShowClientVersion(c) : ShowVersions(c); };
  });
}

}  // namespace tp::cli
