// tp usage: gpu_seconds, summed and behind the sums.
#include <memory>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "absl/time/clock.h"
#include "base/status.h"
#include "cli/answer.h"
#include "cli/collect.h"
#include "cli/commands/commands.h"
#include "cli/render/csv.h"
#include "cli/render/table.h"
#include "cli/render/time.h"

namespace tp::cli {
namespace {

constexpr int32_t kPageSize = 500;

struct UsageFlags {
  std::string by = "run";
  bool all_users = false;
  std::string user;
  std::string project;
  std::string run;
  std::string from;
  std::string to;
  bool audit = false;

  std::string owner() const { return all_users ? "*" : user; }
};

absl::StatusOr<v1::UsageKey> ParseKey(const std::string& text) {
  std::string name = "USAGE_KEY_";
  for (const char c : text) name += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  v1::UsageKey key = v1::USAGE_KEY_UNSPECIFIED;
  if (v1::UsageKey_Parse(name, &key) && key != v1::USAGE_KEY_UNSPECIFIED) return key;
  return InvalidArgument("--by {}: there are user, project, series, profile, day, month, run", text);
}

// What both requests say of the rows they are about.
template <typename Request>
absl::Status SetFilter(const UsageFlags& flags, absl::Time now, Request& request) {
  request.set_owner(flags.owner());
  request.set_project(flags.project);
  request.set_run(flags.run);
  if (!flags.from.empty()) {
    TP_ASSIGN_OR_RETURN(const absl::Time from, ParseInstant(flags.from, "--from", now));
    *request.mutable_from() = ToProto(from);
  }
  if (!flags.to.empty()) {
    TP_ASSIGN_OR_RETURN(const absl::Time to, ParseInstant(flags.to, "--to", now));
    *request.mutable_to() = ToProto(to);
  }
  return absl::OkStatus();
}

absl::StatusOr<v1::QueryUsageRequest> BuildQuery(const UsageFlags& flags, absl::Time now) {
  v1::QueryUsageRequest request;
  TP_ASSIGN_OR_RETURN(const v1::UsageKey key, ParseKey(flags.by));
  request.set_by(key);
  TP_RETURN_IF_ERROR(SetFilter(flags, now, request));
  return request;
}

std::string GpuHours(int64_t gpu_ms) { return fmt::format("{:.2f}", static_cast<double>(gpu_ms) / 3'600'000.0); }

std::string UsageTable(const v1::QueryUsageResponse& usage, const std::string& by, const Terminal& terminal) {
  std::string header = by;
  for (char& c : header) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  Table table({{header, Align::kLeft, true},
               {"RUNS", Align::kRight},
               {"GPU-SECONDS", Align::kRight},
               {"GPU-HOURS", Align::kRight}});
  int64_t total_gpu_ms = 0;
  for (const v1::UsageRow& row : usage.rows()) {
    total_gpu_ms += row.gpu_ms();
    table.AddRow({{row.key()}, {std::to_string(row.runs())}, {GpuSeconds(row.gpu_ms())}, {GpuHours(row.gpu_ms())}});
  }
  if (usage.rows_size() > 1) {
    table.AddRow({{"total", Color::kBold}, {""}, {GpuSeconds(total_gpu_ms)}, {GpuHours(total_gpu_ms)}});
  }
  return table.Render(terminal);
}

std::string UsageCsv(const v1::QueryUsageResponse& usage, const std::string& by) {
  std::string csv = CsvLine({by, "runs", "gpu_ms", "gpu_seconds"});
  for (const v1::UsageRow& row : usage.rows()) {
    csv += CsvLine({row.key(), std::to_string(row.runs()), std::to_string(row.gpu_ms()), GpuSeconds(row.gpu_ms())});
  }
  return csv;
}

absl::StatusOr<ExitCode> ShowUsage(Context& context, const UsageFlags& flags) {
  TP_ASSIGN_OR_RETURN(const v1::QueryUsageRequest request, BuildQuery(flags, absl::Now()));
  TP_ASSIGN_OR_RETURN(Client* const client, context.Connect());
  TP_ASSIGN_OR_RETURN(const v1::QueryUsageResponse usage, client->Call(&v1::UsageService::Stub::QueryUsage, request));
  if (usage.rows().empty()) context.Say("nothing was used");
  Answer answer;
  answer.table = [&](bool) { return usage.rows().empty() ? "" : UsageTable(usage, flags.by, context.terminal()); };
  answer.fill = [&](Json& document) {
    document["by"] = flags.by;
    document["rows"] = ToJson(usage)["rows"];
  };
  answer.names = Collect(usage.rows(), [](const v1::UsageRow& row) { return row.key(); });
  answer.csv = [&] { return UsageCsv(usage, flags.by); };
  return Show(context, answer);
}

using Intervals = std::vector<v1::Interval>;

absl::StatusOr<Intervals> FetchIntervals(Client& client, const UsageFlags& flags) {
  v1::ListIntervalsRequest request;
  TP_RETURN_IF_ERROR(SetFilter(flags, absl::Now(), request));
  request.set_page_size(kPageSize);
  Intervals intervals;
  do {
    TP_ASSIGN_OR_RETURN(const v1::ListIntervalsResponse page,
                        client.Call(&v1::UsageService::Stub::ListIntervals, request));
    intervals.insert(intervals.end(), page.intervals().begin(), page.intervals().end());
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty());
  return intervals;
}

std::string EvidenceText(const v1::Interval& interval) {
  return interval.evidence() + (interval.flagged() ? " (flagged)" : "") + (interval.delta() ? " (correction)" : "");
}

std::string IntervalTable(const Intervals& intervals, bool wide, const Terminal& terminal) {
  std::vector<Column> columns = {{"SEQ", Align::kRight},
                                 {"RUN", Align::kLeft, true},
                                 {"STEP", Align::kRight, false, 3},
                                 {"ATTEMPT", Align::kRight, false, 2},
                                 {"SERIES"},
                                 {"CARDS", Align::kRight},
                                 {"START"},
                                 {"END", Align::kLeft, false, 1},
                                 {"GPU-SECONDS", Align::kRight},
                                 {"EVIDENCE", Align::kLeft, true}};
  if (wide)
    columns.insert(columns.end(), {{"POOL", Align::kRight, false, 8},
                                   {"PROFILE", Align::kLeft, false, 7},
                                   {"USER", Align::kLeft, false, 4},
                                   {"PROJECT", Align::kLeft, false, 5},
                                   {"MONTH", Align::kLeft, false, 6},
                                   {"HASH", Align::kLeft, true, 9}});
  Table table(columns);
  for (const v1::Interval& interval : intervals) {
    std::vector<Cell> row = {{std::to_string(interval.seq())},
                             {interval.run()},
                             {std::to_string(interval.step())},
                             {std::to_string(interval.attempt())},
                             {interval.series()},
                             {std::to_string(interval.cards())},
                             {Rfc3339(FromProto(interval.start()))},
                             {Rfc3339(FromProto(interval.end()))},
                             {GpuSeconds(interval.gpu_ms())},
                             {EvidenceText(interval)}};
    if (wide) {
      row.insert(row.end(), {{std::to_string(interval.pool())},
                             {interval.profile()},
                             {interval.owner()},
                             {interval.project()},
                             {interval.month()},
                             {interval.hash()}});
    }
    table.AddRow(std::move(row));
  }
  return table.Render(terminal);
}

std::string BoolText(bool value) { return value ? "true" : "false"; }

std::string IntervalCsv(const Intervals& intervals) {
  std::string csv =
      CsvLine({"seq", "run", "step", "attempt", "pool", "series", "profile", "owner", "project", "cards", "start",
               "end", "gpu_ms", "flagged", "evidence", "month", "delta", "hash", "previous_hash"});
  for (const v1::Interval& interval : intervals) {
    csv += CsvLine({std::to_string(interval.seq()), interval.run(), std::to_string(interval.step()),
                    std::to_string(interval.attempt()), std::to_string(interval.pool()), interval.series(),
                    interval.profile(), interval.owner(), interval.project(), std::to_string(interval.cards()),
                    Rfc3339(FromProto(interval.start())), Rfc3339(FromProto(interval.end())),
                    std::to_string(interval.gpu_ms()), BoolText(interval.flagged()), interval.evidence(),
                    interval.month(), BoolText(interval.delta()), interval.hash(), interval.previous_hash()});
  }
  return csv;
}

absl::StatusOr<ExitCode> ShowIntervals(Context& context, const UsageFlags& flags) {
  TP_ASSIGN_OR_RETURN(Client* const client, context.Connect());
  TP_ASSIGN_OR_RETURN(const Intervals intervals, FetchIntervals(*client, flags));
  if (intervals.empty()) context.Say("nothing was used");
  Answer answer;
  answer.table = [&](bool wide) { return intervals.empty() ? "" : IntervalTable(intervals, wide, context.terminal()); };
  answer.fill = [&](Json& document) {
    document["intervals"] = Json::array();
    for (const v1::Interval& interval : intervals) document["intervals"].push_back(ToJson(interval));
  };
  answer.csv = [&] { return IntervalCsv(intervals); };
  return Show(context, answer);
}

}  // namespace

void AddUsageCommands(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand("usage", "gpu_seconds used: wall time x cards");
  auto flags = std::make_shared<UsageFlags>();
  command->add_option("--by", flags->by, "user, project, series, profile, day, month or run (default: run)");
  command->add_flag("-A,--all-users", flags->all_users, "Everyone's");
  command->add_option("--user", flags->user, "Whose (default: yours)")->excludes("--all-users");
  command->add_option("--project", flags->project, "Only of this project");
  command->add_option("--run", flags->run, "Only of this run");
  command->add_option("--from", flags->from, "From then on (7d, 2026-11-30, RFC 3339)");
  command->add_option("--to", flags->to, "Until then");
  command->add_flag("--audit", flags->audit, "The metered intervals behind the sums, in ledger order");
  command->callback([&context, flags] {
    context.action = [flags](Context& c) { return flags->audit ? ShowIntervals(c, *flags) : ShowUsage(c, *flags); };
  });
}

}  // namespace tp::cli
