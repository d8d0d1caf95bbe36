// tp: the command line of the platform.
#include <cstdlib>
#include <string_view>

#include <CLI/CLI.hpp>

#include "cli/arguments.h"
#include "cli/completion.h"
#include "cli/context.h"
#include "cli/parser.h"
#include "cli/render/text.h"

namespace tp::cli {
namespace {

// What the shells call (tp completion): the words after it are not ours to parse.
constexpr std::string_view kComplete = "__complete";

ExitCode Run(Context& context) {
  absl::StatusOr<ExitCode> code = context.action(context);
  if (const absl::Status written = context.Flush(); code.ok() && !written.ok()) code = written;
  if (code.ok()) return *code;
  context.Report(code.status());
  return ExitCodeOf(code.status().code());
}

ExitCode Main(int argc, const char* const* argv) {
  UseUtf8Locale();
  // gRPC's own complaints would only double ours.
  ::setenv("GRPC_VERBOSITY", "NONE", 0);
  Context context;
  CLI::App app;
  BuildParser(app, context);
  if (argc > 1 && argv[1] == kComplete) {
    context.Print(Complete(app, context, {argv + 2, argv + argc}));
    return ExitCode::kOk;
  }
  const Arguments arguments = SplitArguments(argc, argv);
  context.command = arguments.command;
  context.has_command = arguments.has_command;
  try {
    app.parse(std::vector<std::string>(arguments.own.rbegin(), arguments.own.rend()));
  } catch (const CLI::Success& help) {
    return static_cast<ExitCode>(app.exit(help));
  } catch (const CLI::ParseError& error) {
    context.Report(absl::InvalidArgumentError(Explain(app, error, arguments)));
    return ExitCode::kUsage;
  }
  if (const absl::Status status = CheckCombination(app, context); !status.ok()) {
    context.Report(status);
    return ExitCode::kUsage;
  }
  return Run(context);
}

}  // namespace
}  // namespace tp::cli

int main(int argc, char** argv) { return static_cast<int>(tp::cli::Main(argc, argv)); }
