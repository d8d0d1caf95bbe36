#include "cli/render/steps.h"

#include <vector>

#include <fmt/format.h>

#include "cli/render/runs.h"
#include "cli/render/table.h"
#include "cli/render/time.h"

namespace tp::cli {
namespace {

struct Lines {
  const char* next;
  const char* last;
  const char* past;
};
constexpr Lines kTree = {"├─ ", "└─ ", "│  "};
constexpr Lines kPlainTree = {"|- ", "`- ", "|  "};

class Drawing {
 public:
  Drawing(const v1::Run& run, const Terminal& terminal, absl::Time now)
      : run_(run), terminal_(terminal), now_(now), lines_(terminal.utf8 ? kTree : kPlainTree) {}

  std::string Render() {
    for (int i = 0; i < run_.steps_size(); ++i) {
      if (!run_.steps(i).spec().has_after()) AddStep(i, "", "");
    }
    return table_.Render(terminal_);
  }

 private:
  // `stem` leads to the step, `below` to what comes after it.
  void AddStep(int index, const std::string& stem, const std::string& below) {
    const v1::Step& step = run_.steps(index);
    table_.AddRow({{stem + step.spec().name()},
                   {StateText(step), ColorOf(step.state())},
                   {Condition(step)},
                   {ShortShape(step)},
                   {step.has_entered_at() ? ShortDuration(now_ - FromProto(step.entered_at())) : ""},
                   {step.reason()}});
    const std::vector<int> next = After(index);
    for (size_t i = 0; i < next.size(); ++i) {
      const bool last = i + 1 == next.size();
      AddStep(next[i], below + (last ? lines_.last : lines_.next), below + (last ? "   " : lines_.past));
    }
  }

  // Only later ones, so that no answer of a server makes a circle.
  std::vector<int> After(int index) const {
    std::vector<int> next;
    for (int i = index + 1; i < run_.steps_size(); ++i) {
      const v1::StepSpec& spec = run_.steps(i).spec();
      if (spec.has_after() && spec.after().step() == run_.steps(index).spec().name()) next.push_back(i);
    }
    return next;
  }

  static std::string Condition(const v1::Step& step) {
    return step.spec().has_after() ? ConditionText(step.spec().after().when()) : "";
  }

  const v1::Run& run_;
  const Terminal& terminal_;
  const absl::Time now_;
  const Lines& lines_;
  Table table_{{{"STEP"},
                {"STATE"},
                {"WHEN", Align::kLeft, false, 2},
                {"PROFILE", Align::kLeft, false, 1},
                {"SINCE", Align::kRight},
                {"REASON", Align::kLeft, true}}};
};

}  // namespace

std::string StepTree(const v1::Run& run, const Terminal& terminal, absl::Time now) {
  return Drawing(run, terminal, now).Render();
}

}  // namespace tp::cli
