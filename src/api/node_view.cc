#include "api/node_view.h"

#include <algorithm>
#include <map>
#include <set>

#include "api/convert.h"

namespace tp::api {
namespace {

struct Machine {
  std::string address;
  int cards = 0;
  std::vector<std::string> series;
  std::set<std::string> backends;
};

std::map<std::string, Machine> MachinesOf(const core::Registry& registry) {
  std::map<std::string, Machine> machines;
  for (const auto& [name, series] : registry.series) {
    for (const core::Node& node : series.nodes) {
      Machine& machine = machines[node.name];
      machine.address = node.address;
      machine.cards = std::max(machine.cards, series.gpus_per_node);
      machine.series.push_back(name);
      for (const std::string& executor : {series.executor, series.executor_distributed}) {
        if (const auto found = registry.executors.find(executor); found != registry.executors.end()) {
          machine.backends.insert(found->second.backend);
        }
      }
    }
  }
  return machines;
}

v1::NodeMarkKind KindOf(core::MarkKind kind) {
  switch (kind) {
    case core::MarkKind::kDrained:
      return v1::NODE_MARK_KIND_DRAINED;
    case core::MarkKind::kDead:
      return v1::NODE_MARK_KIND_DEAD;
  }
  return v1::NODE_MARK_KIND_UNSPECIFIED;
}

void FillMark(const core::NodeMark& mark, v1::NodeMark* to) {
  if (!mark.part.whole()) to->set_card(mark.part.card);
  to->set_kind(KindOf(mark.kind));
  to->set_reason(mark.reason);
  to->set_set_by(mark.by);
  *to->mutable_set_at() = ToProto(mark.at);
}

void FillStrike(const core::Strike& strike, v1::NodeStrike* to) {
  to->set_owner(strike.owner);
  to->set_run(strike.attempt.step.run);
  to->set_attempt(strike.attempt.attempt);
  to->set_kind(std::string(core::Name(strike.kind)));
  *to->mutable_at() = ToProto(strike.at);
}

void FillHealth(const NodeSight& sight, v1::NodeHealth* to) {
  to->set_reachable(sight.reachable);
  to->set_why(sight.why);
  *to->mutable_since() = ToProto(sight.since);
  if (sight.clock_offset) *to->mutable_clock_offset() = ToProto(*sight.clock_offset);
  if (sight.disk_free_bytes) to->set_disk_free_bytes(*sight.disk_free_bytes);
  to->set_boot_id(sight.boot_id);
}

void FillHolders(const loop::NodesAnswer& answer, const NodeViewer& viewer, v1::Node* node) {
  for (const loop::NodesAnswer::Holder& holder : answer.holders) {
    if (holder.part.node != node->name()) continue;
    v1::NodeHolder* to = node->add_holders();
    if (!holder.part.whole()) to->set_card(holder.part.card);
    to->set_owner(holder.owner);
    if (viewer.sees_all || viewer.user == holder.owner) to->set_run_id(holder.run_id);
  }
  for (const core::CardHeldElsewhere& held : answer.elsewhere) {
    if (held.part.node != node->name()) continue;
    v1::NodeHolder* to = node->add_holders();
    if (!held.part.whole()) to->set_card(held.part.card);
    to->set_elsewhere(held.holder);
  }
}

}  // namespace

void FillNodes(const core::Registry& registry, const loop::NodesAnswer& answer, const std::vector<NodeSight>& sights,
               const NodeViewer& viewer, const std::string& name, v1::ListNodesResponse* response) {
  for (const auto& [node_name, machine] : MachinesOf(registry)) {
    if (!name.empty() && name != node_name) continue;
    v1::Node* node = response->add_nodes();
    node->set_name(node_name);
    node->set_address(machine.address);
    node->mutable_series()->Assign(machine.series.begin(), machine.series.end());
    node->mutable_backends()->Assign(machine.backends.begin(), machine.backends.end());
    node->set_cards(machine.cards);
    for (const core::NodeMark& mark : answer.marks) {
      if (mark.part.node == node_name) FillMark(mark, node->add_marks());
    }
    for (const core::Strike& strike : answer.strikes) {
      if (strike.node == node_name) FillStrike(strike, node->add_strikes());
    }
    FillHolders(answer, viewer, node);
    for (const NodeSight& sight : sights) {
      if (sight.node == node_name) FillHealth(sight, node->mutable_health());
    }
  }
}

}  // namespace tp::api
