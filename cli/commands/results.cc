// tp results: what a run left in its results directory.
#include <memory>

#include <fmt/format.h>
#include <unistd.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "absl/time/clock.h"
#include "base/human_bytes.h"
#include "base/status.h"
#include "cli/answer.h"
#include "cli/collect.h"
#include "cli/commands/commands.h"
#include "cli/download.h"
#include "cli/follow.h"
#include "cli/render/table.h"
#include "cli/render/time.h"

namespace tp::cli {
namespace {

using ResultFiles = std::vector<v1::ResultFile>;

absl::StatusOr<ResultFiles> FetchResults(Client& client, const std::string& run) {
  v1::ListResultsRequest request;
  request.set_run(run);
  TP_ASSIGN_OR_RETURN(const v1::ListResultsResponse response, client.Call(&v1::RunService::Stub::ListResults, request));
  return ResultFiles(response.files().begin(), response.files().end());
}

std::vector<std::string> Paths(const ResultFiles& files) {
  return Collect(files, [](const v1::ResultFile& file) { return file.path(); });
}

std::string ResultTable(const ResultFiles& files, bool wide, const Terminal& terminal) {
  Table table({{"SIZE", Align::kRight}, {"MODIFIED", Align::kRight}, {"PATH", Align::kLeft, true}});
  for (const v1::ResultFile& file : files) {
    const absl::Time modified = FromProto(file.modified_at());
    table.AddRow({{wide ? std::to_string(file.bytes()) : HumanBytes(file.bytes())},
                  {wide ? Rfc3339(modified) : RelativeTime(modified, absl::Now())},
                  {file.path()}});
  }
  return table.Render(terminal);
}

absl::StatusOr<ExitCode> ListResultFiles(Context& context, const std::string& run) {
  TP_ASSIGN_OR_RETURN(Client* const client, context.Connect());
  TP_ASSIGN_OR_RETURN(const ResultFiles files, FetchResults(*client, run));
  Answer answer;
  answer.table = [&](bool wide) { return ResultTable(files, wide, context.terminal()); };
  answer.fill = [&](Json& document) {
    document["files"] = Json::array();
    for (const v1::ResultFile& file : files) document["files"].push_back(ToJson(file));
  };
  answer.names = Paths(files);
  return Show(context, answer);
}

struct GetFlags {
  std::string run;
  std::vector<std::string> paths;  // empty: all
  std::string to;                  // empty: a directory named after the run; `-`: stdout
};

constexpr const char* kGetFooter =
    "A copy that is broken off goes on where it was when the command is given again. Each file is checked against\n"
    "the server's SHA-256 before it gets its name.";

absl::StatusOr<std::vector<std::string>> PathsToGet(Client& client, const GetFlags& flags) {
  if (!flags.paths.empty()) return flags.paths;
  TP_ASSIGN_OR_RETURN(const ResultFiles files, FetchResults(client, flags.run));
  return Paths(files);
}

absl::StatusOr<ExitCode> GetResults(Context& context, const GetFlags& flags) {
  if (flags.to == "-" && flags.paths.size() != 1) return InvalidArgument("--to -: name the one PATH to print");
  TP_ASSIGN_OR_RETURN(Client* const client, context.Connect());
  if (flags.to == "-") {
    TP_RETURN_IF_ERROR(PrintResult(context, flags.run, flags.paths.front()));
    return ExitCode::kOk;
  }
  std::string directory = flags.to;
  if (directory.empty()) {
    TP_ASSIGN_OR_RETURN(const v1::Run run, FetchRun(*client, flags.run));
    directory = run.id() + "-results";
  }
  TP_ASSIGN_OR_RETURN(const std::vector<std::string> paths, PathsToGet(*client, flags));
  Answer answer;
  answer.names.emplace();
  for (const std::string& path : paths) {
    TP_RETURN_IF_ERROR(DownloadResult(context, flags.run, path, directory));
    answer.names->push_back(directory + "/" + path);
  }
  context.Say(fmt::format("{} file(s) in {}", paths.size(), directory));
  answer.table = [&](bool) { return fmt::format("{}{}", fmt::join(*answer.names, "\n"), paths.empty() ? "" : "\n"); };
  answer.fill = [&](Json& document) { document["stored"] = *answer.names; };
  return Show(context, answer);
}

void AddResultsList(CLI::App& results, Context& context) {
  auto run = std::make_shared<std::string>();
  CLI::App* list = results.add_subcommand("ls", "List the result files");
  list->add_option("RUN", *run, "42, train-42 or @last")->required();
  list->callback([&context, run] { context.action = [run](Context& c) { return ListResultFiles(c, *run); }; });
}

void AddResultsGet(CLI::App& results, Context& context) {
  auto flags = std::make_shared<GetFlags>();
  CLI::App* get = results.add_subcommand("get", "Copy result files to this machine");
  get->footer(kGetFooter);
  get->add_option("RUN", flags->run, "42, train-42 or @last")->required();
  get->add_option("PATH", flags->paths, "Files as `tp results ls` names them (default: all)");
  get->add_option("--to", flags->to, "Directory (default: RUN-results); - prints one file");
  get->callback([&context, flags] { context.action = [flags](Context& c) { return GetResults(c, *flags); }; });
}

void AddResults(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand("results", "What a run left in $TP_RESULTS_DIR");
  auto run = std::make_shared<std::string>();
  command->add_option("RUN", *run, "42, train-42 or @last: as `results ls RUN`");
  AddResultsList(*command, context);
  AddResultsGet(*command, context);
  command->callback([&context, command, run] {
    if (!command->get_subcommands().empty()) return;
    context.action = [run](Context& c) -> absl::StatusOr<ExitCode> {
      if (run->empty()) return InvalidArgument("RUN is missing: tp results RUN, or tp results get RUN");
      return ListResultFiles(c, *run);
    };
  });
}

}  // namespace

void AddResultCommands(CLI::App& app, Context& context) { AddResults(app, context); }

}  // namespace tp::cli
