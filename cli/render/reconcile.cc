#include "cli/render/reconcile.h"

#include "cli/render/enum_word.h"
#include "cli/render/table.h"
#include "cli/render/text.h"

namespace tp::cli {

std::string ReconcilePage(const v1::ReconcileResponse& response, const Terminal& terminal) {
  const std::string note = response.note().empty() ? "" : EscapeControl(response.note()) + "\n";
  if (response.findings().empty())
    return "every object has its live attempt, every running attempt its object\n" + note;
  Table table({{.header = "WHAT"}, {.header = "BACKEND"}, {.header = "KEY"}, {.header = "WHY", .flexible = true}});
  for (const v1::ReconcileFinding& finding : response.findings()) {
    const std::string kind = EnumWord(v1::ReconcileFindingKind_Name(finding.kind()), "RECONCILE_FINDING_KIND_");
    table.AddRow({{kind}, {finding.backend()}, {finding.key()}, {finding.sentence()}});
  }
  return table.Render(terminal) + note;
}

}  // namespace tp::cli
