#include "cli/render/nodes.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/human_bytes.h"
#include "cli/render/color.h"
#include "cli/render/fields.h"
#include "cli/render/table.h"
#include "cli/render/text.h"
#include "cli/render/time.h"

namespace tp::cli {
namespace {

// Below it clocks are told as equal: what a sample over ssh is worth.
constexpr absl::Duration kClockNoise = absl::Milliseconds(100);

const v1::NodeMark* MarkOfWhole(const v1::Node& node) {
  for (const v1::NodeMark& mark : node.marks()) {
    if (!mark.has_card()) return &mark;
  }
  return nullptr;
}

Cell StateOf(const v1::Node& node) {
  const v1::NodeMark* const mark = MarkOfWhole(node);
  if (mark != nullptr && mark->kind() == v1::NODE_MARK_KIND_DEAD) return {"dead", Color::kRed};
  if (node.has_health() && !node.health().reachable()) return {"unreachable", Color::kRed};
  if (mark != nullptr) return {"drained", Color::kYellow};
  if (!node.marks().empty()) return {"in part", Color::kYellow};
  return {"ok", Color::kGreen};
}

std::string MarkText(const v1::NodeMark& mark) {
  const std::string what = mark.has_card() ? fmt::format("card {} ", mark.card()) : "";
  const std::string_view kind = mark.kind() == v1::NODE_MARK_KIND_DEAD ? "declared dead" : "drained";
  return mark.reason().empty() ? fmt::format("{}{} by {}", what, kind, mark.set_by())
                               : fmt::format("{}{} by {}: {}", what, kind, mark.set_by(), mark.reason());
}

std::string WhyOf(const v1::Node& node) {
  std::vector<std::string> why;
  for (const v1::NodeMark& mark : node.marks()) why.push_back(MarkText(mark));
  if (node.has_health() && !node.health().why().empty()) why.push_back(node.health().why());
  return fmt::format("{}", fmt::join(why, "; "));
}

size_t HeldCards(const v1::Node& node) {
  std::set<int> cards;
  for (const v1::NodeHolder& holder : node.holders()) {
    if (holder.has_card()) cards.insert(holder.card());
  }
  return cards.size();
}

std::string CardsText(const v1::Node& node) {
  if (node.cards() > 0) return fmt::format("{}/{}", HeldCards(node), node.cards());
  return node.holders().empty() ? "free" : "held";
}

std::string StrikesText(const v1::Node& node) {
  std::set<std::string> owners;
  for (const v1::NodeStrike& strike : node.strikes()) owners.insert(strike.owner());
  if (owners.empty()) return "0";
  return fmt::format("{} ({} user{})", node.strikes_size(), owners.size(), owners.size() == 1 ? "" : "s");
}

std::string DiskText(const v1::Node& node) {
  return node.has_health() && node.health().has_disk_free_bytes() ? HumanBytes(node.health().disk_free_bytes()) : "";
}

std::string ClockText(const v1::Node& node) {
  if (!node.has_health() || !node.health().has_clock_offset()) return "";
  const absl::Duration offset = FromProto(node.health().clock_offset());
  if (absl::AbsDuration(offset) < kClockNoise) return "0";
  return fmt::format("{:+.1f}s", absl::ToDoubleSeconds(offset));
}

std::string HolderText(const v1::NodeHolder& holder) {
  const std::string what = holder.has_card() ? fmt::format("card {}", holder.card()) : "the node";
  if (!holder.elsewhere().empty()) return fmt::format("{}: {}, not of tp", what, holder.elsewhere());
  return holder.run_id().empty() ? fmt::format("{}: a run of {}", what, holder.owner())
                                 : fmt::format("{}: {} of {}", what, holder.run_id(), holder.owner());
}

}  // namespace

std::string NodeTable(const v1::ListNodesResponse& response, const Terminal& terminal, absl::Time now, bool wide) {
  std::vector<Column> columns = {{.header = "NAME"},
                                 {.header = "STATE"},
                                 {.header = "HELD", .align = Align::kRight},
                                 {.header = "STRIKES", .spare = 2},
                                 {.header = "DISK FREE", .align = Align::kRight, .spare = 4},
                                 {.header = "CLOCK", .align = Align::kRight, .spare = 5},
                                 {.header = "SERIES", .spare = 1},
                                 {.header = "BACKEND", .spare = 3},
                                 {.header = "WHY", .flexible = true}};
  if (wide) {
    columns.insert(columns.begin() + 1, {.header = "ADDRESS"});
    columns.push_back({.header = "SINCE"});
  }
  Table table(std::move(columns));
  for (const v1::Node& node : response.nodes()) {
    std::vector<Cell> cells = {{node.name()},
                               StateOf(node),
                               {CardsText(node)},
                               {StrikesText(node)},
                               {DiskText(node)},
                               {ClockText(node)},
                               {fmt::format("{}", fmt::join(node.series(), ","))},
                               {fmt::format("{}", fmt::join(node.backends(), ","))},
                               {WhyOf(node)}};
    if (wide) {
      cells.insert(cells.begin() + 1, {node.address()});
      cells.push_back({node.has_health() ? RelativeTime(FromProto(node.health().since()), now) : ""});
    }
    table.AddRow(std::move(cells));
  }
  return table.Render(terminal);
}

std::string NodePage(const v1::Node& node, const Terminal& terminal, absl::Time now) {
  const Cell state = StateOf(node);
  std::string page = fmt::format("{}  {}\n", Paint(EscapeControl(node.name()), Color::kBold, terminal.colors),
                                 Paint(state.text, state.color, terminal.colors));
  Fields fields(2, terminal, 9);
  fields.Add("address", node.address());
  fields.Add("series", fmt::format("{}", fmt::join(node.series(), ", ")));
  fields.Add("backend", fmt::format("{}", fmt::join(node.backends(), ", ")));
  fields.Add("held", CardsText(node));
  for (const v1::NodeMark& mark : node.marks()) {
    fields.Add(&mark == &node.marks(0) ? "marks" : "",
               fmt::format("{} ({})", MarkText(mark), RelativeTime(FromProto(mark.set_at()), now)));
  }
  for (const v1::NodeStrike& strike : node.strikes()) {
    fields.Add(&strike == &node.strikes(0) ? "strikes" : "",
               fmt::format("{}: attempt {} of run {} of {} ({})", strike.kind(), strike.attempt(), strike.run(),
                           strike.owner(), RelativeTime(FromProto(strike.at()), now)));
  }
  for (const v1::NodeHolder& holder : node.holders()) {
    fields.Add(&holder == &node.holders(0) ? "holders" : "", HolderText(holder));
  }
  if (node.has_health()) {
    const v1::NodeHealth& health = node.health();
    fields.Add("reachable", fmt::format("{}, since {}{}{}", health.reachable() ? "yes" : "no",
                                        RelativeTime(FromProto(health.since()), now), health.why().empty() ? "" : ": ",
                                        health.why()));
    if (!DiskText(node).empty()) fields.Add("disk free", DiskText(node));
    if (!ClockText(node).empty()) fields.Add("clock", ClockText(node) + " of tpd's");
    if (!health.boot_id().empty()) fields.Add("boot", health.boot_id());
  }
  return page + fields.text();
}

}  // namespace tp::cli
