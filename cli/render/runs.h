// Runs as people read them. Everything that others wrote is escaped here. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"
#include "cli/terminal.h"
#include "tp/v1/run.pb.h"

namespace tp::cli {

// The words without their prefix: `RUNNING`; `-` for none.
// `on success`, `on failure`, `always`.
std::string ConditionText(v1::AfterWhen when);

std::string StateName(v1::RunState state);
std::string StateName(v1::JobState state);

bool IsTerminal(v1::RunState state);

// The state as people read it: the server's text, else the word.
std::string StateText(const v1::Run& run);
std::string StateText(const v1::Step& step);

// The first line about a run, and about one step of several.
std::string RunTitle(const v1::Run& run, const Terminal& terminal);
std::string StepTitle(const v1::Step& step, int count, const Terminal& terminal);

// The step that counts now: the first that has not ended, else the last; null where there is none.
const v1::Step* CurrentStep(const v1::Run& run);

// `h200:16` of `h200:16 = 2 nodes x 8`; several pools with commas.
std::string ShortShape(const v1::Step& step);
std::string ShortShape(std::string_view shape);

// A command line that a shell would read as this argv.
std::string ShellQuote(const google::protobuf::RepeatedPtrField<std::string>& argv);

std::string RunTable(const std::vector<v1::Run>& runs, bool wide, const Terminal& terminal, absl::Time now);

// One screen: `tp show`.
std::string RunPage(const v1::Run& run, const Terminal& terminal, absl::Time now);

// `tp submit --dry-run`: what would run.
std::string PlanPage(const v1::Run& run, const google::protobuf::RepeatedPtrField<std::string>& notes,
                     const Terminal& terminal, absl::Time now);

}  // namespace tp::cli
