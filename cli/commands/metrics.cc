// tp metrics: what a run measured, as a table, as plots, as data.
#include <memory>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/status.h"
#include "cli/answer.h"
#include "cli/commands/commands.h"
#include "cli/metrics.h"

namespace tp::cli {
namespace {

struct MetricFlags {
  std::string run;
  int32_t step = 0;
  int64_t after_step = 0;
  int64_t tail = 0;
  std::vector<std::string> names;
  bool plot = false;
};

absl::StatusOr<v1::ReadMetricsResponse> FetchMetrics(Client& client, const MetricFlags& flags) {
  v1::ReadMetricsRequest request;
  request.set_run(flags.run);
  request.set_step(flags.step);
  request.set_after_step(flags.after_step);
  TP_ASSIGN_OR_RETURN(v1::ReadMetricsResponse response, client.Call(&v1::RunService::Stub::ReadMetrics, request));
  auto& lines = *response.mutable_lines();
  if (flags.tail > 0 && lines.size() > flags.tail) lines.DeleteSubrange(0, lines.size() - static_cast<int>(flags.tail));
  return response;
}

absl::StatusOr<ExitCode> ShowMetrics(Context& context, const MetricFlags& flags) {
  TP_ASSIGN_OR_RETURN(Client* const client, context.Connect());
  TP_ASSIGN_OR_RETURN(const v1::ReadMetricsResponse response, FetchMetrics(*client, flags));
  TP_ASSIGN_OR_RETURN(const Json metrics, SelectMetrics(MetricsToJson(response.lines()), flags.names));
  Answer answer;
  answer.table = [&](bool) {
    return flags.plot ? MetricsPlots(metrics, context.terminal()) : MetricsTable(metrics, context.terminal());
  };
  answer.fill = [&](Json& document) {
    document["run"] = flags.run;
    document["metrics"] = metrics;
    document["truncated"] = response.truncated();
  };
  answer.csv = [&] { return MetricsCsv(metrics); };
  if (metrics.empty()) context.Say("no metrics: the run has written nothing to $TP_METRICS_FILE");
  if (response.truncated()) context.Say("the oldest lines were left out: the answer would have been too large");
  return Show(context, answer);
}

}  // namespace

void AddMetricCommands(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand("metrics", "What a run wrote to $TP_METRICS_FILE");
  auto flags = std::make_shared<MetricFlags>();
  command->add_option("RUN", flags->run, "42, train-42 or @last")->required();
  command->add_option("--metric", flags->names, "Only these, by name; may be repeated")
      ->allow_extra_args(false)
      ->delimiter(',');
  command->add_flag("--plot", flags->plot, "Draw them over the training step");
  command->add_option("--step", flags->step, "This step of a pipeline, counted from 1")->check(CLI::PositiveNumber);
  command->add_option("--after-step", flags->after_step, "Leave out training steps below this one")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--tail", flags->tail, "Only the last N lines")->check(CLI::PositiveNumber);
  command->callback([&context, flags] { context.action = [flags](Context& c) { return ShowMetrics(c, *flags); }; });
}

}  // namespace tp::cli
