#include "cli/answer.h"

#include <nlohmann/json.hpp>

#include "base/status.h"
#include "cli/render/text.h"

namespace tp::cli {
namespace {

Json Filled(const Answer& answer) {
  Json document = NewDocument();
  answer.fill(document);
  return document;
}

absl::Status NotOffered(std::string_view format) {
  return InvalidArgument("-o {}: this command does not have it; use table, wide, json or yaml", format);
}

}  // namespace

absl::StatusOr<ExitCode> Show(const Context& context, const Answer& answer) {
  switch (context.globals.output) {
    case OutputFormat::kTable:
      context.Print(answer.table(false));
      return ExitCode::kOk;
    case OutputFormat::kWide:
      context.Print(answer.table(true));
      return ExitCode::kOk;
    case OutputFormat::kJson:
      context.Print(DumpJson(Filled(answer)));
      return ExitCode::kOk;
    case OutputFormat::kYaml:
      context.Print(DumpYaml(Filled(answer)));
      return ExitCode::kOk;
    case OutputFormat::kName:
      if (!answer.names) return NotOffered("name");
      for (const std::string& name : *answer.names) context.Print(EscapeControl(name) + "\n");
      return ExitCode::kOk;
    case OutputFormat::kCsv:
      if (!answer.csv) return NotOffered("csv");
      context.Print(answer.csv());
      return ExitCode::kOk;
  }
  return ExitCode::kOk;
}

}  // namespace tp::cli
