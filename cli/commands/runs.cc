// tp status, ls, show, why: looking at runs.
#include <memory>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "absl/time/clock.h"
#include "base/status.h"
#include "cli/answer.h"
#include "cli/collect.h"
#include "cli/commands/commands.h"
#include "cli/follow.h"
#include "cli/render/runs.h"
#include "cli/render/text.h"
#include "cli/run_list.h"
#include "cli/version.h"

namespace tp::cli {
namespace {

constexpr const char* kStatusReach = "24h";

Json RunsToJson(const std::vector<v1::Run>& runs) {
  Json array = Json::array();
  for (const v1::Run& run : runs) array.push_back(ToJson(run));
  return array;
}

std::vector<std::string> Ids(const std::vector<v1::Run>& runs) {
  return Collect(runs, [](const v1::Run& run) { return run.id(); });
}

absl::StatusOr<ExitCode> ShowList(Context& context, const ListFlags& flags) {
  TP_ASSIGN_OR_RETURN(Client* const client, context.Connect());
  TP_ASSIGN_OR_RETURN(const RunList list, ListRuns(*client, flags, absl::Now()));
  Answer answer;
  answer.table = [&](bool wide) { return RunTable(list.runs, wide, context.terminal(), absl::Now()); };
  answer.fill = [&](Json& document) {
    document["runs"] = RunsToJson(list.runs);
    document["more"] = list.more;
  };
  answer.names = Ids(list.runs);
  TP_ASSIGN_OR_RETURN(const ExitCode code, Show(context, answer));
  if (list.more) context.Say(fmt::format("older runs are left out; -n {} shows more, -n 0 all", 2 * flags.limit));
  return code;
}

absl::StatusOr<ExitCode> ShowStanding(Context& context, bool all_users) {
  TP_ASSIGN_OR_RETURN(Client* const client, context.Connect());
  TP_RETURN_IF_ERROR(WarnOfVersionSkew(context, *client));
  ListFlags flags;
  flags.all_users = all_users;
  flags.since = kStatusReach;
  flags.limit = 0;
  TP_ASSIGN_OR_RETURN(const RunList list, ListRuns(*client, flags, absl::Now()));
  const UseSummary use = SummarizeUse(list.runs);
  Answer answer;
  answer.table = [&](bool wide) {
    return EscapeControl(UseSentence(list.owner, use)) + "\n\n" +
           RunTable(list.runs, wide, context.terminal(), absl::Now());
  };
  answer.fill = [&](Json& document) {
    document["user"] = list.owner;
    document["standing"] = {
        {"cards", use.cards}, {"live_jobs", use.live_jobs}, {"queued", use.queued}, {"paused", use.paused}};
    document["runs"] = RunsToJson(list.runs);
  };
  answer.names = Ids(list.runs);
  return Show(context, answer);
}

absl::StatusOr<ExitCode> ShowRuns(Context& context, const std::vector<std::string>& selectors) {
  TP_ASSIGN_OR_RETURN(Client* const client, context.Connect());
  std::vector<v1::Run> runs;
  for (const std::string& selector : selectors) {
    TP_ASSIGN_OR_RETURN(v1::Run run, FetchRun(*client, selector));
    runs.push_back(std::move(run));
  }
  Answer answer;
  answer.table = [&](bool) {
    std::string pages;
    for (const v1::Run& run : runs) {
      pages += (pages.empty() ? "" : "\n") + RunPage(run, context.terminal(), absl::Now());
    }
    return pages;
  };
  answer.fill = [&](Json& document) { document["runs"] = RunsToJson(runs); };
  answer.names = Ids(runs);
  return Show(context, answer);
}

Json WhyToJson(const v1::Run& run) {
  Json steps = Json::array();
  for (const v1::Step& step : run.steps()) {
    const Json whole = ToJson(step);
    steps.push_back({{"index", whole["index"]},
                     {"name", whole["spec"]["name"]},
                     {"state", whole["state"]},
                     {"reason", whole["reason"]},
                     {"gates", whole["gates"]}});
  }
  return steps;
}

absl::StatusOr<ExitCode> ShowWhy(Context& context, const std::string& selector) {
  TP_ASSIGN_OR_RETURN(Client* const client, context.Connect());
  TP_ASSIGN_OR_RETURN(const v1::Run run, FetchRun(*client, selector));
  Answer answer;
  answer.table = [&](bool) { return WhyPage(run, context.terminal(), absl::Now()); };
  answer.fill = [&](Json& document) {
    document["run"] = run.id();
    document["state"] = StateName(run.state());
    document["steps"] = WhyToJson(run);
  };
  answer.names = std::vector<std::string>{run.id()};
  return Show(context, answer);
}

void AddStatus(CLI::App& app, Context& context) {
  CLI::App* command =
      app.add_subcommand("status", "What you have in use, and your runs of the last day; with RUN as show");
  auto runs = std::make_shared<std::vector<std::string>>();
  auto all_users = std::make_shared<bool>(false);
  command->add_option("RUN", *runs, "Runs: 42, train-42 or @last");
  command->add_flag("-A,--all-users", *all_users, "Everyone's runs");
  command->callback([&context, runs, all_users] {
    context.action = [runs, all_users](Context& c) {
      return runs->empty() ? ShowStanding(c, *all_users) : ShowRuns(c, *runs);
    };
  });
}

void AddList(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand("ls", "Runs, newest first");
  command->alias("list");
  auto flags = std::make_shared<ListFlags>();
  command->add_flag("-A,--all-users", flags->all_users, "Everyone's runs");
  command->add_option("--user", flags->user, "Whose runs (default: yours)")->excludes("--all-users");
  command->add_option("--project", flags->project, "Only of this project");
  command->add_option("--state", flags->states, "Only in these states; may be repeated")
      ->allow_extra_args(false)
      ->delimiter(',');
  command->add_option("--label", flags->labels, "Only with this label, key=value; may be repeated")
      ->allow_extra_args(false);
  command->add_option("--since", flags->since, "Leave out runs that ended before this (36h, 7d, 2026-11-30)");
  command->add_option("-n,--limit", flags->limit, "At most so many; 0: all")->check(CLI::NonNegativeNumber);
  command->callback([&context, flags] { context.action = [flags](Context& c) { return ShowList(c, *flags); }; });
}

void AddShow(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand("show", "All about a run");
  auto runs = std::make_shared<std::vector<std::string>>();
  command->add_option("RUN", *runs, "Runs: 42, train-42 or @last")->required();
  command->callback([&context, runs] { context.action = [runs](Context& c) { return ShowRuns(c, *runs); }; });
}

void AddWhy(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand("why", "What keeps a run from starting, and what frees it");
  auto run = std::make_shared<std::string>();
  command->add_option("RUN", *run, "42, train-42 or @last")->required();
  command->callback([&context, run] { context.action = [run](Context& c) { return ShowWhy(c, *run); }; });
}

}  // namespace

void AddRunCommands(CLI::App& app, Context& context) {
  AddStatus(app, context);
  AddList(app, context);
  AddShow(app, context);
  AddWhy(app, context);
}

}  // namespace tp::cli
