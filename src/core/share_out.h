// Nodes for several pools at once, where pools may want the same ones: complete, at a cost that grows with kinds
// of nodes, not with arrangements. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace tp::core {

// `fitting`: by pool, the nodes that could serve a rank of it, each once, the preferred first; `wanted`: how many it
// needs. No node serves two. Of all ways there are the first: pool by pool, the preferred nodes. Nothing: there is
// no way.
std::optional<std::vector<std::vector<size_t>>> ShareOut(const std::vector<std::vector<size_t>>& fitting,
                                                         const std::vector<int64_t>& wanted);

}  // namespace tp::core
