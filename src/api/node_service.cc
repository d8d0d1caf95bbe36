#include "api/node_service.h"

#include <algorithm>
#include <memory>
#include <string>

#include "api/errors.h"
#include "api/mutation.h"
#include "api/node_view.h"
#include "auth/roles.h"

namespace tp::api {
namespace {

constexpr std::string_view kListNodes = "/tp.v1.NodeService/ListNodes";
constexpr std::string_view kMarkNode = "/tp.v1.NodeService/MarkNode";
constexpr std::string_view kClearNode = "/tp.v1.NodeService/ClearNode";
constexpr size_t kMaxReasonBytes = 512;

template <typename Request>
absl::StatusOr<core::NodePart> PartOf(const Request& request) {
  if (request.node().empty()) return FieldError("node", "say which node: tp admin nodes lists them");
  core::NodePart part{.node = request.node()};
  if (request.has_card()) {
    if (request.card() < 0) return FieldError("card", "cards are counted from 0");
    part.card = request.card();
  }
  return part;
}

absl::StatusOr<core::MarkKind> KindOf(v1::NodeMarkKind kind) {
  if (kind == v1::NODE_MARK_KIND_DRAINED) return core::MarkKind::kDrained;
  if (kind == v1::NODE_MARK_KIND_DEAD) return core::MarkKind::kDead;
  return FieldError("kind", "a node is drained or declared dead");
}

absl::StatusOr<loop::MarkNode> ParseMark(const v1::MarkNodeRequest& request) {
  loop::MarkNode mark;
  TP_ASSIGN_OR_RETURN(mark.part, PartOf(request));
  TP_ASSIGN_OR_RETURN(mark.kind, KindOf(request.kind()));
  if (request.reason().size() > kMaxReasonBytes) {
    return FieldError("reason", "a reason has at most {} bytes", kMaxReasonBytes);
  }
  mark.reason = request.reason();
  return mark;
}

bool HasNode(const core::Registry& registry, const std::string& name) {
  return std::any_of(registry.series.begin(), registry.series.end(), [&name](const auto& item) {
    const std::vector<core::Node>& nodes = item.second.nodes;
    return std::any_of(nodes.begin(), nodes.end(), [&name](const core::Node& node) { return node.name == name; });
  });
}

// Only of machines that a backend reaches by itself is an admin's word needed, and heeded (DESIGN 5.11).
absl::Status CheckCanBeDead(const Context& context, const std::string& name) {
  const std::vector<NodeSight> sights = context.node_sights();
  const bool reached =
      std::any_of(sights.begin(), sights.end(), [&name](const NodeSight& sight) { return sight.node == name; });
  if (reached || !HasNode(*context.registry(), name)) return absl::OkStatus();
  return FailedPrecondition(
      "{} is not a machine that tpd reaches over ssh, so its engine says what became of its jobs: "
      "to keep new ones off it, drain it (tp admin node drain {})",
      name, name);
}

absl::StatusOr<loop::ClearNode> ParseClear(const v1::ClearNodeRequest& request) {
  loop::ClearNode clear;
  TP_ASSIGN_OR_RETURN(clear.part, PartOf(request));
  return clear;
}

bool IsDead(const loop::NodesAnswer& nodes, const core::NodePart& part) {
  return std::any_of(nodes.marks.begin(), nodes.marks.end(), [&part](const core::NodeMark& mark) {
    return mark.part == part && mark.kind == core::MarkKind::kDead;
  });
}

// Before its cards are used again: what ran on a node that was declared dead must have ended there (DESIGN 5.11).
absl::Status CheckNothingIsLeft(Context& context, const std::string& node) {
  const auto seen = context.inventory();
  if (!seen.ok()) {
    return FailedPrecondition("it is not known yet what is left on {}: {}", node, Message(seen.status()));
  }
  for (const core::SeenObject& object : *seen) {
    const bool there = !object.target || std::any_of(object.target->hosts.begin(), object.target->hosts.end(),
                                                     [&node](const RankHost& host) { return host.node == node; });
    if (there) {
      return FailedPrecondition("{} still has processes on {}: they end within a heartbeat; else tp admin reconcile",
                                object.key, node);
    }
  }
  return absl::OkStatus();
}

void ClearNode(Context& context, const Call& call, const v1::ClearNodeRequest& request, v1::ClearNodeResponse* response,
               const Done& done) {
  auto action = ParseClear(request);
  if (!action.ok()) return done(action.status());
  context.loop.Post(loop::NodesQuery(), [&context, call, &request, response, done,
                                         action = *std::move(action)](const absl::StatusOr<loop::NodesAnswer>& nodes) {
    if (!nodes.ok()) return done(nodes.status());
    context.files.Post([&context, call, &request, response, done, action, dead = IsDead(*nodes, action.part)] {
      if (dead) {
        if (const absl::Status status = CheckNothingIsLeft(context, action.part.node); !status.ok())
          return done(status);
      }
      ChangeWithNote(context, call, request, response, done, action);
    });
  });
}

void ListNodes(Context& context, const Call& call, const v1::ListNodesRequest& request, v1::ListNodesResponse* response,
               const Done& done) {
  const std::shared_ptr<const core::Registry> registry = context.registry();
  NodeViewer viewer{.user = call.caller.user, .sees_all = call.caller.role >= store::Role::kOperator};
  context.loop.Post(loop::NodesQuery(), [&context, registry, viewer, name = request.node(), response,
                                         done](absl::StatusOr<loop::NodesAnswer> answer) {
    if (!answer.ok()) return done(answer.status());
    context.calls.Post([&context, registry, viewer, name, response, done, answer = *std::move(answer)] {
      FillNodes(*registry, answer, context.node_sights(), viewer, name, response);
      const bool unknown = !name.empty() && response->nodes().empty();
      done(unknown ? WithReason(NotFound("there is no node {}: tp admin nodes lists them", name), "NODE_NOT_FOUND")
                   : absl::OkStatus());
    });
  });
}

}  // namespace

grpc::ServerUnaryReactor* NodeService::ListNodes(grpc::CallbackServerContext* server_context,
                                                 const v1::ListNodesRequest* request, v1::ListNodesResponse* response) {
  return RunUnary(context_, context_.calls, server_context, kListNodes, [=, this](const Call& call, const Done& done) {
    tp::api::ListNodes(context_, call, *request, response, done);
  });
}

grpc::ServerUnaryReactor* NodeService::MarkNode(grpc::CallbackServerContext* server_context,
                                                const v1::MarkNodeRequest* request, v1::MarkNodeResponse* response) {
  return RunUnary(context_, context_.calls, server_context, kMarkNode, [=, this](const Call& call, const Done& done) {
    auto action = ParseMark(*request);
    absl::Status status = action.status();
    if (status.ok() && action->kind == core::MarkKind::kDead) status = CheckCanBeDead(context_, action->part.node);
    if (!status.ok()) return done(status);
    ChangeWithNote(context_, call, *request, response, done, *std::move(action));
  });
}

grpc::ServerUnaryReactor* NodeService::ClearNode(grpc::CallbackServerContext* server_context,
                                                 const v1::ClearNodeRequest* request, v1::ClearNodeResponse* response) {
  return RunUnary(context_, context_.files, server_context, kClearNode, [=, this](const Call& call, const Done& done) {
    tp::api::ClearNode(context_, call, *request, response, done);
  });
}

}  // namespace tp::api
