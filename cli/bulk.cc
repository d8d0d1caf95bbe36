#include "cli/bulk.h"

#include <iostream>

#include <fmt/format.h>
#include <unistd.h>

#include "absl/time/clock.h"
#include "base/status.h"
#include "cli/collect.h"
#include "cli/render/runs.h"

namespace tp::cli {
namespace {

constexpr size_t kNamedRuns = 10;

std::string CountOf(std::string_view verb, const RunList& list) {
  const std::string whose = list.owner.empty() ? "of all users" : fmt::format("of {}", list.owner);
  return fmt::format("{} {} run{} {}", verb, list.runs.size(), list.runs.size() == 1 ? "" : "s", whose);
}

std::string NameThem(const std::vector<v1::Run>& runs) {
  std::string names;
  for (size_t i = 0; i < runs.size() && i < kNamedRuns; ++i) {
    names += fmt::format("{}{} ({})", i == 0 ? "" : ", ", runs[i].id(), StateName(runs[i].state()));
  }
  return runs.size() > kNamedRuns ? fmt::format("{} and {} more", names, runs.size() - kNamedRuns) : names;
}

// Asked on stderr, so that stdout stays the ids'.
bool Agrees(const Context& context, const std::string& question) {
  context.Ask(question + " [y/N] ");
  std::string answer;
  std::getline(std::cin, answer);
  return answer == "y" || answer == "Y" || answer == "yes";
}

absl::Status Confirm(const Context& context, std::string_view verb, const RunList& list, bool* agreed) {
  const std::string count = CountOf(verb, list);
  if (::isatty(STDIN_FILENO) == 0 || ::isatty(STDERR_FILENO) == 0) {
    return InvalidArgument("{}: there is no terminal to ask at; -y does it without a question", count);
  }
  *agreed = Agrees(context, fmt::format("{}: {}?", count, NameThem(list.runs)));
  if (!*agreed) context.Say("nothing was done");
  return absl::OkStatus();
}

}  // namespace

bool BulkFlags::has_filter() const {
  return filter.all_users || !filter.user.empty() || !filter.project.empty() || !filter.states.empty() ||
         !filter.labels.empty();
}

std::vector<v1::RunState> StatesFor(std::string_view verb) {
  const std::vector<v1::RunState> starting = {v1::RUN_STATE_QUEUED, v1::RUN_STATE_SUBMITTED, v1::RUN_STATE_PENDING};
  const auto with = [&](std::vector<v1::RunState> more) {
    more.insert(more.begin(), starting.begin(), starting.end());
    return more;
  };
  if (verb == "stop") return with({v1::RUN_STATE_RUNNING, v1::RUN_STATE_PAUSED});
  if (verb == "pause") return with({v1::RUN_STATE_RUNNING});
  if (verb == "resume") return {v1::RUN_STATE_PAUSED};
  if (verb == "retry") return {v1::RUN_STATE_FAILED, v1::RUN_STATE_STOPPED, v1::RUN_STATE_PARTIAL};
  if (verb == "rm") {
    return {v1::RUN_STATE_SUCCEEDED, v1::RUN_STATE_FAILED, v1::RUN_STATE_STOPPED, v1::RUN_STATE_PARTIAL};
  }
  if (verb == "hold" || verb == "release") return {v1::RUN_STATE_QUEUED};
  return {};
}

absl::StatusOr<std::vector<std::string>> SelectRuns(Context& context, std::string_view verb, const BulkFlags& flags) {
  if (!flags.runs.empty()) {
    if (flags.has_filter()) return InvalidArgument("name runs, or describe them by --label and --state, not both");
    return flags.runs;
  }
  if (!flags.has_filter()) {
    return InvalidArgument("which runs? name them (tp {} 42), or describe them: --label k=v, --state S, --user U",
                           verb);
  }
  ListFlags filter = flags.filter;
  filter.limit = 0;
  if (filter.states.empty()) {
    filter.states = Collect(StatesFor(verb), [](v1::RunState state) { return StateName(state); });
  }
  TP_ASSIGN_OR_RETURN(Client* const client, context.Connect());
  TP_ASSIGN_OR_RETURN(const RunList list, ListRuns(*client, filter, absl::Now()));
  if (list.runs.empty()) {
    context.Say("no run matches");
    return std::vector<std::string>();
  }
  bool agreed = flags.yes;
  if (!agreed) TP_RETURN_IF_ERROR(Confirm(context, verb, list, &agreed));
  if (!agreed) return std::vector<std::string>();
  return Collect(list.runs, [](const v1::Run& run) { return run.id(); });
}

}  // namespace tp::cli
