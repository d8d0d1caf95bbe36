// What is told of nodes: the registry, what the loop says of them, how the backends saw them. Pure.
#pragma once

#include <string>
#include <vector>

#include "core/registry.h"
#include "loop/commands.h"
#include "tp/nodes.h"
#include "tp/v1/node.pb.h"

namespace tp::api {

struct NodeViewer {
  std::string user;
  bool sees_all = false;  // the names of everybody's runs
};

// `name`: only this one; empty: all. Sorted by name.
void FillNodes(const core::Registry& registry, const loop::NodesAnswer& answer, const std::vector<NodeSight>& sights,
               const NodeViewer& viewer, const std::string& name, v1::ListNodesResponse* response);

}  // namespace tp::api
