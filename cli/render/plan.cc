#include "cli/render/plan.h"

#include <vector>

#include <fmt/ranges.h>

#include "cli/render/table.h"
#include "cli/render/text.h"

namespace tp::cli {
namespace {

std::string PoolName(const v1::PoolPlan& pool) {
  const int total = pool.gpus_per_node() == 0 ? pool.nodes() : pool.nodes() * pool.gpus_per_node();
  const std::string roles = pool.roles().empty() ? "" : fmt::format("{}=", fmt::join(pool.roles(), ","));
  return EscapeControl(fmt::format("{}{}:{}", roles, pool.profile(), total));
}

std::string RankText(const v1::PlannedRank& rank) {
  const std::string cards = rank.cards().empty() ? "" : fmt::format(" cards {}", fmt::join(rank.cards(), ","));
  return EscapeControl(fmt::format("rank {} on {}{}", rank.rank(), rank.node(), cards));
}

std::string RankLines(const v1::PoolPlan& pool) {
  if (pool.ranks().empty()) {
    return fmt::format("  {}: {} rank(s), where is not known yet\n", PoolName(pool), pool.nodes());
  }
  std::string lines;
  for (const v1::PlannedRank& rank : pool.ranks()) {
    lines += fmt::format("  {}: {}\n", PoolName(pool), RankText(rank));
  }
  return lines;
}

std::string VariableTable(const v1::StepPlan& plan, const Terminal& terminal) {
  Table table({{"POOL"}, {"VARIABLE"}, {"FROM"}, {"VALUE", Align::kLeft, true}});
  for (const v1::PoolPlan& pool : plan.pools()) {
    for (const v1::PlannedVariable& variable : pool.environment()) {
      table.AddRow({{PoolName(pool)}, {variable.name()}, {OriginName(variable.origin())}, {variable.value()}});
    }
  }
  return table.empty() ? "" : table.Render(terminal);
}

std::string OverrideLines(const v1::PoolPlan& pool) {
  std::string lines;
  for (const v1::PlannedOverrides& overrides : pool.overrides()) {
    lines += EscapeControl(fmt::format("  {} overrides: {}", overrides.framework(), overrides.text())) + "\n";
  }
  return lines;
}

}  // namespace

std::string OriginName(v1::VariableOrigin origin) {
  switch (origin) {
    case v1::VARIABLE_ORIGIN_PROJECT_FILE:
      return "tp.yaml";
    case v1::VARIABLE_ORIGIN_SERIES:
      return "series";
    case v1::VARIABLE_ORIGIN_PROFILE:
      return "profile";
    case v1::VARIABLE_ORIGIN_SHAPE:
      return "shape";
    case v1::VARIABLE_ORIGIN_COMMAND_LINE:
      return "--env";
    case v1::VARIABLE_ORIGIN_LOCKED:
      return "series, locked";
    default:  // of a newer server
      return "-";
  }
}

std::string LaunchPlan(const google::protobuf::RepeatedPtrField<v1::StepPlan>& plans, const Terminal& terminal) {
  std::string page;
  for (const v1::StepPlan& plan : plans) {
    const std::string title =
        fmt::format("launch of {} by executor {} ({})", plan.step(), plan.executor(), plan.backend());
    page += fmt::format("\n{}\n", EscapeControl(title));
    for (const v1::PoolPlan& pool : plan.pools()) page += RankLines(pool) + OverrideLines(pool);
    page += VariableTable(plan, terminal);
  }
  return page;
}

}  // namespace tp::cli
