// tp profiles, series: which hardware there is.
#include <memory>

#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/status.h"
#include "cli/answer.h"
#include "cli/collect.h"
#include "cli/commands/commands.h"
#include "cli/render/table.h"

namespace tp::cli {
namespace {

std::string ProfileTable(const v1::ListProfilesResponse& response, const Terminal& terminal) {
  Table table({{"NAME"}, {"SERIES"}, {"DEFAULT SHAPE"}, {"DESCRIPTION", Align::kLeft, true}});
  for (const v1::Profile& profile : response.profiles()) {
    table.AddRow({{profile.name()}, {profile.series()}, {profile.default_shape()}, {profile.description()}});
  }
  return table.Render(terminal);
}

std::string SeriesTable(const v1::ListSeriesResponse& response, const Terminal& terminal) {
  Table table({{"NAME"},
               {"NODES", Align::kRight},
               {"GPUS/NODE", Align::kRight},
               {"CARDS", Align::kRight},
               {"FREE", Align::kRight},
               {"KIND"},
               {"BACKEND"},
               {"DESCRIPTION", Align::kLeft, true}});
  for (const v1::Series& series : response.series()) {
    table.AddRow({{series.name()},
                  {std::to_string(series.nodes())},
                  {std::to_string(series.gpus_per_node())},
                  {std::to_string(series.total_cards())},
                  {std::to_string(series.free_cards())},
                  {series.gpus_per_node() == 0 ? "cpu"
                   : series.virtual_cards()    ? "virtual"
                                               : "real"},
                  {series.backend()},
                  {series.description()}});
  }
  return table.Render(terminal);
}

// The message's fields become the document's.
void Merge(Json& document, const google::protobuf::Message& message) {
  const Json fields = ToJson(message);
  for (const auto& [key, value] : fields.items()) document[key] = value;
}

absl::StatusOr<ExitCode> ShowProfiles(Context& context) {
  TP_ASSIGN_OR_RETURN(Client* const client, context.Connect());
  TP_ASSIGN_OR_RETURN(const v1::ListProfilesResponse response,
                      client->Call(&v1::RegistryService::Stub::ListProfiles, v1::ListProfilesRequest()));
  Answer answer;
  answer.table = [&](bool) { return ProfileTable(response, context.terminal()); };
  answer.fill = [&](Json& document) { Merge(document, response); };
  answer.names = Collect(response.profiles(), [](const v1::Profile& profile) { return profile.name(); });
  return Show(context, answer);
}

std::string ExecutorTable(const v1::ListExecutorsResponse& response, const Terminal& terminal, bool wide) {
  Table table(
      {{.header = "NAME"}, {.header = "BACKEND"}, {.header = "SERIES"}, {.header = "CONFIG", .flexible = true}});
  for (const v1::Executor& executor : response.executors()) {
    std::vector<std::string> series(executor.series().begin(), executor.series().end());
    for (const std::string& name : executor.distributed_series()) series.push_back(name + " (distributed)");
    const bool plain = executor.config_json() == "{}";
    table.AddRow({{executor.name()},
                  {executor.backend()},
                  {fmt::format("{}", fmt::join(series, ", "))},
                  {plain ? "" : executor.config_json()}});
  }
  return table.Render(wide ? Terminal() : terminal);
}

absl::StatusOr<ExitCode> ShowExecutors(Context& context) {
  TP_ASSIGN_OR_RETURN(Client* const client, context.Connect());
  TP_ASSIGN_OR_RETURN(const v1::ListExecutorsResponse response,
                      client->Call(&v1::RegistryService::Stub::ListExecutors, v1::ListExecutorsRequest()));
  Answer answer;
  answer.table = [&](bool wide) { return ExecutorTable(response, context.terminal(), wide); };
  answer.fill = [&](Json& document) { Merge(document, response); };
  answer.names = Collect(response.executors(), [](const v1::Executor& executor) { return executor.name(); });
  return Show(context, answer);
}

absl::StatusOr<ExitCode> ShowSeries(Context& context) {
  TP_ASSIGN_OR_RETURN(Client* const client, context.Connect());
  TP_ASSIGN_OR_RETURN(const v1::ListSeriesResponse response,
                      client->Call(&v1::RegistryService::Stub::ListSeries, v1::ListSeriesRequest()));
  Answer answer;
  answer.table = [&](bool) { return SeriesTable(response, context.terminal()); };
  answer.fill = [&](Json& document) { Merge(document, response); };
  answer.names = Collect(response.series(), [](const v1::Series& series) { return series.name(); });
  return Show(context, answer);
}

}  // namespace

void AddRegistryCommands(CLI::App& app, Context& context) {
  CLI::App* profiles = app.add_subcommand("profiles", "What --profile takes");
  auto executors = std::make_shared<bool>(false);
  profiles->add_flag("--executors", *executors, "Where jobs are launched instead: backend and settings of each");
  profiles->callback([&context, executors] { context.action = *executors ? ShowExecutors : ShowProfiles; });
  app.add_subcommand("series", "The hardware behind the profiles")->callback([&context] {
    context.action = ShowSeries;
  });
}

}  // namespace tp::cli
