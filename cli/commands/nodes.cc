// tp admin nodes, tp admin node drain | undrain | dead.
#include <memory>
#include <optional>
#include <string>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "absl/time/clock.h"
#include "base/status.h"
#include "cli/answer.h"
#include "cli/collect.h"
#include "cli/commands/commands.h"
#include "cli/render/nodes.h"

namespace tp::cli {
namespace {

absl::StatusOr<ExitCode> ShowNodes(Context& context, const std::string& node) {
  TP_ASSIGN_OR_RETURN(Client* const client, context.Connect());
  v1::ListNodesRequest request;
  request.set_node(node);
  TP_ASSIGN_OR_RETURN(const v1::ListNodesResponse response, client->Call(&v1::NodeService::Stub::ListNodes, request));
  if (response.nodes().empty()) context.Say("the registry lists no nodes: the engines know them");
  Answer answer;
  answer.table = [&](bool wide) {
    return node.empty() ? NodeTable(response, context.terminal(), absl::Now(), wide)
                        : NodePage(response.nodes(0), context.terminal(), absl::Now());
  };
  answer.fill = [&](Json& document) { document.update(ToJson(response)); };
  answer.names = Collect(response.nodes(), [](const v1::Node& one) { return one.name(); });
  return Show(context, answer);
}

struct MarkFlags {
  std::string node;
  std::optional<int> card;
  std::string reason;
  bool yes = false;
};

absl::StatusOr<ExitCode> Mark(Context& context, const MarkFlags& flags, v1::NodeMarkKind kind) {
  v1::MarkNodeRequest request;
  request.set_request_id(NewRequestId());
  request.set_node(flags.node);
  if (flags.card) request.set_card(*flags.card);
  request.set_kind(kind);
  request.set_reason(flags.reason);
  TP_ASSIGN_OR_RETURN(Client* const client, context.Connect());
  TP_ASSIGN_OR_RETURN(const v1::MarkNodeResponse response, client->Call(&v1::NodeService::Stub::MarkNode, request));
  return ShowNote(context, flags.node, response.note());
}

absl::StatusOr<ExitCode> Drain(Context& context, const MarkFlags& flags) {
  return Mark(context, flags, v1::NODE_MARK_KIND_DRAINED);
}

absl::StatusOr<ExitCode> DeclareDead(Context& context, const MarkFlags& flags) {
  if (!flags.yes) {
    return InvalidArgument(
        "every run on {} ends as lost without being asked, although its processes may still be running there; they are "
        "ended before the node takes jobs again. If the machine is really gone, say so with --yes",
        flags.node);
  }
  return Mark(context, flags, v1::NODE_MARK_KIND_DEAD);
}

absl::StatusOr<ExitCode> Undrain(Context& context, const MarkFlags& flags) {
  v1::ClearNodeRequest request;
  request.set_request_id(NewRequestId());
  request.set_node(flags.node);
  if (flags.card) request.set_card(*flags.card);
  TP_ASSIGN_OR_RETURN(Client* const client, context.Connect());
  TP_ASSIGN_OR_RETURN(const v1::ClearNodeResponse response, client->Call(&v1::NodeService::Stub::ClearNode, request));
  return ShowNote(context, flags.node, response.note());
}

}  // namespace

void AddAdminNodeCommands(CLI::App& admin, Context& context) {
  CLI::App* nodes = admin.add_subcommand("nodes", "The machines: how they are, who holds their cards, strikes");
  auto only = std::make_shared<std::string>();
  nodes->add_option("NODE", *only, "Everything about this one");
  nodes->callback([&context, only] { context.action = [only](Context& c) { return ShowNodes(c, *only); }; });

  CLI::App* node = admin.add_subcommand("node", "Take a machine out of service, or back");
  node->require_subcommand(1);
  const auto add = [&](const char* name, const char* help, auto action) {
    CLI::App* command = node->add_subcommand(name, help);
    auto flags = std::make_shared<MarkFlags>();
    command->add_option("NODE", flags->node, "Which (tp admin nodes)")->required();
    command->callback(
        [&context, flags, action] { context.action = [flags, action](Context& c) { return action(c, *flags); }; });
    return std::pair(command, flags);
  };
  const auto [drain, drained] = add("drain", "It takes no new jobs; what runs there goes on", Drain);
  drain->add_option("--card", drained->card, "Only this card of it");
  drain->add_option("--reason", drained->reason, "Told to everybody who waits for it");
  const auto [undrain, undrained] = add("undrain", "It takes jobs again, and its strikes are forgotten", Undrain);
  undrain->add_option("--card", undrained->card, "Only this card of it");
  const auto [dead, declared] = add("dead", "It is gone for good: what runs there ends as lost", DeclareDead);
  dead->add_option("--reason", declared->reason, "Told to everybody whose run it ends");
  dead->add_flag("-y,--yes", declared->yes, "The machine is really gone");
}

}  // namespace tp::cli
