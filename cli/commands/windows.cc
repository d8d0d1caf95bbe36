// tp windows, tp admin window hold-open: when jobs of a series may run.
#include <memory>
#include <string>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "absl/time/clock.h"
#include "base/status.h"
#include "cli/answer.h"
#include "cli/collect.h"
#include "cli/commands/commands.h"
#include "cli/render/time.h"
#include "cli/render/windows.h"

namespace tp::cli {
namespace {

constexpr int kDefaultDays = 14;
constexpr int kMostDays = 62;

absl::StatusOr<ExitCode> ShowWindows(Context& context, const std::string& series, int days) {
  TP_ASSIGN_OR_RETURN(Client* const client, context.Connect());
  v1::ListWindowsRequest request;
  request.set_series(series);
  request.set_days(days);
  TP_ASSIGN_OR_RETURN(const v1::ListWindowsResponse response,
                      client->Call(&v1::WindowService::Stub::ListWindows, request));
  if (response.series().empty()) {
    context.Say(series.empty() ? "no series has windows: all are always open"
                               : series + " has no windows: it is always open");
  }
  Answer answer;
  answer.table = [&](bool) { return WindowPage(response, context.terminal(), absl::Now()); };
  answer.fill = [&](Json& document) { document.update(ToJson(response)); };
  answer.names = Collect(response.series(), [](const v1::SeriesWindows& windows) { return windows.series(); });
  return Show(context, answer);
}

struct HoldFlags {
  std::string series;
  std::string lasting;
  std::string until;
  bool end = false;
  bool dry_run = false;
};

absl::StatusOr<v1::HoldWindowOpenRequest> BuildHold(const HoldFlags& flags, absl::Time now) {
  v1::HoldWindowOpenRequest request;
  request.set_request_id(NewRequestId());
  request.set_series(flags.series);
  request.set_dry_run(flags.dry_run);
  if (!flags.lasting.empty()) {
    TP_ASSIGN_OR_RETURN(const absl::Duration lasting, ParseTimeSpan(flags.lasting, "--for"));
    *request.mutable_until() = ToProto(now + lasting);
  }
  if (!flags.until.empty()) {
    TP_ASSIGN_OR_RETURN(const absl::Time until, ParseFutureInstant(flags.until, "--until", now));
    *request.mutable_until() = ToProto(until);
  }
  return request;
}

absl::StatusOr<ExitCode> HoldOpen(Context& context, const HoldFlags& flags) {
  if (flags.lasting.empty() && flags.until.empty() && !flags.end) {
    return InvalidArgument("say for how long: --for 3h, --until T, or --end for its hours again");
  }
  TP_ASSIGN_OR_RETURN(const v1::HoldWindowOpenRequest request, BuildHold(flags, absl::Now()));
  TP_ASSIGN_OR_RETURN(Client* const client, context.Connect());
  TP_ASSIGN_OR_RETURN(const v1::HoldWindowOpenResponse response,
                      client->Call(&v1::WindowService::Stub::HoldWindowOpen, request));
  if (flags.dry_run) return ShowForecast(context, response.note(), response.forecast());
  return ShowNote(context, flags.series, response.note());
}

}  // namespace

void AddWindowCommands(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand("windows", "When jobs may run: open or closed, the next edge, what comes");
  auto series = std::make_shared<std::string>();
  auto days = std::make_shared<int>(kDefaultDays);
  command->add_option("SERIES", *series, "Only of this series");
  command->add_option("--days", *days, "How far ahead openings are listed")->check(CLI::Range(1, kMostDays));
  command->callback([&context, series, days] {
    context.action = [series, days](Context& c) { return ShowWindows(c, *series, *days); };
  });
}

void AddAdminWindowCommands(CLI::App& admin, Context& context) {
  CLI::App* window = admin.add_subcommand("window", "Windows, whatever their hours say");
  window->require_subcommand(1);
  CLI::App* hold = window->add_subcommand("hold-open", "Hold the windows of a series open for a time");
  auto flags = std::make_shared<HoldFlags>();
  hold->add_option("SERIES", flags->series, "Whose windows (tp windows)")->required();
  CLI::Option* lasting = hold->add_option("--for", flags->lasting, "For so long (90m, 3h, 2d)");
  CLI::Option* until = hold->add_option("--until", flags->until, "Until then (3h, 2026-12-01, RFC 3339)");
  CLI::Option* end = hold->add_flag("--end", flags->end, "By their hours again");
  hold->add_flag("--dry-run", flags->dry_run, "Say what would start or resume, or be paused; change nothing");
  lasting->excludes(until)->excludes(end);
  until->excludes(end);
  hold->callback([&context, flags] { context.action = [flags](Context& c) { return HoldOpen(c, *flags); }; });
}

}  // namespace tp::cli
