// tp status, ls, show: looking at runs.
#include <memory>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "absl/time/clock.h"
#include "base/status.h"
#include "cli/answer.h"
#include "cli/collect.h"
#include "cli/commands/commands.h"
#include "cli/follow.h"
#include "cli/render/fields.h"
#include "cli/render/quota.h"
#include "cli/render/runs.h"
#include "cli/render/text.h"
#include "cli/render/windows.h"
#include "cli/run_list.h"
#include "cli/version_skew.h"
#include "cli/watch.h"

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

// Frames own what they show.
template <typename T>
std::shared_ptr<const T> Keep(T value) {
  return std::make_shared<const T>(std::move(value));
}

absl::StatusOr<Frame> ListFrame(const Context& context, Client& client, const ListFlags& flags) {
  TP_ASSIGN_OR_RETURN(RunList listed, ListRuns(client, flags, absl::Now()));
  const auto list = Keep(std::move(listed));
  Frame frame;
  if (list->runs.empty()) frame.talk = "no runs";
  if (list->more) frame.talk = fmt::format("older runs are left out; -n {} shows more, -n 0 all", 2 * flags.limit);
  frame.answer.table = [&context, list](bool wide) {
    if (list->runs.empty()) return std::string();
    return RunTable(list->runs, wide, context.terminal(), absl::Now());
  };
  frame.answer.fill = [list](Json& document) {
    document["runs"] = RunsToJson(list->runs);
    document["more"] = list->more;
  };
  frame.answer.names = Ids(list->runs);
  return frame;
}

// What `tp status` begins with.
struct MyStanding {
  RunList list;
  std::optional<v1::Standing> quota;  // absent where everyone's runs are shown
  v1::ListWindowsResponse windows;
};

absl::StatusOr<MyStanding> FetchStanding(Client& client, const ListFlags& flags) {
  MyStanding standing;
  TP_ASSIGN_OR_RETURN(standing.list, ListRuns(client, flags, absl::Now()));
  if (!flags.all_users) {
    TP_ASSIGN_OR_RETURN(const v1::GetStandingResponse quota,
                        client.Call(&v1::QuotaService::Stub::GetStanding, v1::GetStandingRequest()));
    standing.quota = quota.standing();
  }
  v1::ListWindowsRequest windows;
  windows.set_days(1);
  TP_ASSIGN_OR_RETURN(standing.windows, client.Call(&v1::WindowService::Stub::ListWindows, windows));
  return standing;
}

std::string StandingText(const MyStanding& standing, const Terminal& terminal, absl::Time now) {
  constexpr int kLabelColumns = 8;
  Fields fields(0, terminal, kLabelColumns);
  if (standing.quota) fields.Add("quota", StandingSentence(*standing.quota));
  std::string label = "windows";
  for (const v1::SeriesWindows& windows : standing.windows.series()) {
    for (const std::string& sentence : WindowSentences(windows, now)) {
      fields.Add(label, sentence);
      label.clear();
    }
  }
  return EscapeControl(UseSentence(standing.list.owner, SummarizeUse(standing.list.runs))) + "\n" + fields.text();
}

absl::StatusOr<Frame> StandingFrame(const Context& context, Client& client, const ListFlags& flags) {
  TP_ASSIGN_OR_RETURN(MyStanding fetched, FetchStanding(client, flags));
  const auto standing = Keep(std::move(fetched));
  Frame frame;
  frame.answer.table = [&context, standing](bool wide) {
    const std::vector<v1::Run>& runs = standing->list.runs;
    std::string text = StandingText(*standing, context.terminal(), absl::Now());
    if (runs.empty()) return text;
    return text + "\n" + RunTable(runs, wide, context.terminal(), absl::Now());
  };
  frame.answer.fill = [standing](Json& document) {
    const UseSummary use = SummarizeUse(standing->list.runs);
    document["user"] = standing->list.owner;
    document["standing"] = {
        {"cards", use.cards}, {"live_jobs", use.live_jobs}, {"queued", use.queued}, {"paused", use.paused}};
    document["quota"] = standing->quota ? ToJson(*standing->quota) : Json();
    document["windows"] = ToJson(standing->windows)["series"];
    document["runs"] = RunsToJson(standing->list.runs);
  };
  frame.answer.names = Ids(standing->list.runs);
  return frame;
}

absl::StatusOr<Frame> RunsFrame(const Context& context, Client& client, const std::vector<std::string>& selectors) {
  std::vector<v1::Run> fetched;
  Frame frame;
  frame.last = true;
  for (const std::string& selector : selectors) {
    TP_ASSIGN_OR_RETURN(v1::Run run, FetchRun(client, selector));
    frame.last = frame.last && IsTerminal(run.state());
    fetched.push_back(std::move(run));
  }
  frame.answer.names = Ids(fetched);
  const auto runs = Keep(std::move(fetched));
  frame.answer.table = [&context, runs](bool) {
    std::string pages;
    for (const v1::Run& run : *runs) {
      pages += (pages.empty() ? "" : "\n") + RunPage(run, context.terminal(), absl::Now());
    }
    return pages;
  };
  frame.answer.fill = [runs](Json& document) { document["runs"] = RunsToJson(*runs); };
  return frame;
}

absl::StatusOr<ExitCode> ShowList(Context& context, const ListFlags& flags, bool watch) {
  return ShowOrWatch(context, watch, [&](Client& client) { return ListFrame(context, client, flags); });
}

absl::StatusOr<ExitCode> ShowStanding(Context& context, bool all_users, bool watch) {
  TP_ASSIGN_OR_RETURN(Client* const connected, context.Connect());
  TP_RETURN_IF_ERROR(WarnOfVersionSkew(context, *connected).status());
  ListFlags flags;
  flags.all_users = all_users;
  flags.since = kStatusReach;
  flags.limit = 0;
  return ShowOrWatch(context, watch, [&](Client& client) { return StandingFrame(context, client, flags); });
}

absl::StatusOr<ExitCode> ShowRuns(Context& context, const std::vector<std::string>& selectors, bool watch) {
  return ShowOrWatch(context, watch, [&](Client& client) { return RunsFrame(context, client, selectors); });
}

std::shared_ptr<bool> AddWatchFlag(CLI::App& command) {
  auto watch = std::make_shared<bool>(false);
  command.add_flag("-w,--watch", *watch, "Show it again whenever something happens, until Ctrl-C");
  return watch;
}

void AddStatus(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand(
      "status", "Where you stand with quota and windows, and your runs of the last day; with RUN as show");
  auto runs = std::make_shared<std::vector<std::string>>();
  auto all_users = std::make_shared<bool>(false);
  command->add_option("RUN", *runs, "Runs: 42, train-42 or @last");
  command->add_flag("-A,--all-users", *all_users, "Everyone's runs");
  const auto watch = AddWatchFlag(*command);
  command->callback([&context, runs, all_users, watch] {
    context.action = [runs, all_users, watch](Context& c) {
      return runs->empty() ? ShowStanding(c, *all_users, *watch) : ShowRuns(c, *runs, *watch);
    };
  });
}

void AddList(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand("ls", "Runs, newest first");
  command->alias("list")->alias("ps");
  auto flags = std::make_shared<ListFlags>();
  AddFilterFlags(*command, *flags);
  command->add_option("--since", flags->since, "Leave out runs that ended before this (36h, 7d, 2026-11-30)");
  command->add_option("-n,--limit", flags->limit, "At most so many; 0: all")->check(CLI::NonNegativeNumber);
  command->add_flag("--removed", flags->removed, "Removed ones as well");
  const auto watch = AddWatchFlag(*command);
  command->callback([&context, flags, watch] {
    context.action = [flags, watch](Context& c) { return ShowList(c, *flags, *watch); };
  });
}

void AddShow(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand("show", "All about a run");
  auto runs = std::make_shared<std::vector<std::string>>();
  command->add_option("RUN", *runs, "Runs: 42, train-42 or @last")->required();
  const auto watch = AddWatchFlag(*command);
  command->callback(
      [&context, runs, watch] { context.action = [runs, watch](Context& c) { return ShowRuns(c, *runs, *watch); }; });
}

}  // namespace

void AddFilterFlags(CLI::App& command, ListFlags& flags) {
  command.add_flag("-A,--all-users", flags.all_users, "Everyone's runs");
  command.add_option("--user", flags.user, "Whose runs (default: yours)")->excludes("--all-users");
  command.add_option("--project", flags.project, "Only of this project");
  command.add_option("--state", flags.states, "Only in these states; may be repeated")
      ->allow_extra_args(false)
      ->delimiter(',');
  command.add_option("--label", flags.labels, "Only with this label, key=value; may be repeated")
      ->allow_extra_args(false);
}

void AddRunCommands(CLI::App& app, Context& context) {
  AddStatus(app, context);
  AddList(app, context);
  AddShow(app, context);
}

}  // namespace tp::cli
