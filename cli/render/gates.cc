#include "cli/render/gates.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/render/color.h"
#include "cli/render/enum_word.h"
#include "cli/render/fields.h"
#include "cli/render/text.h"
#include "cli/render/time.h"

namespace tp::cli {
namespace {

// ` (closed for 5m, opens in 3h20m)`
std::string TimesOf(const v1::GateVerdict& gate, absl::Time now) {
  std::vector<std::string> times;
  if (gate.has_since()) times.push_back("closed for " + ShortDuration(now - FromProto(gate.since())));
  if (gate.has_opens_at()) times.push_back("opens " + RelativeTime(FromProto(gate.opens_at()), now));
  return times.empty() ? "" : fmt::format(" ({})", fmt::join(times, ", "));
}

}  // namespace

std::string GateName(v1::Gate gate) { return EnumWord(v1::Gate_Name(gate), "GATE_"); }

std::string GateLines(const google::protobuf::RepeatedPtrField<v1::GateVerdict>& gates, const Terminal& terminal,
                      absl::Time now, int indent) {
  size_t longest = 0;
  for (const v1::GateVerdict& gate : gates) longest = std::max(longest, GateName(gate.gate()).size());
  std::string lines;
  for (const v1::GateVerdict& gate : gates) {
    const std::string name = fmt::format("{:<{}} ", GateName(gate.gate()), longest);
    const std::string line =
        Hanging(name, EscapeControl(gate.sentence() + TimesOf(gate, now)), indent, terminal.columns);
    lines += fmt::format("{:{}}{}{}", "", indent, Paint(name, Color::kYellow, terminal.colors),
                         line.substr(static_cast<size_t>(indent) + name.size()));
  }
  return lines;
}

}  // namespace tp::cli
