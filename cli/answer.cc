#include "cli/answer.h"

#include <nlohmann/json.hpp>

#include "base/status.h"
#include "cli/render/forecast.h"
#include "cli/render/text.h"

namespace tp::cli {
namespace {

Json Filled(const Answer& answer) {
  Json document = NewDocument();
  answer.fill(document);
  return document;
}

std::string Lines(const std::vector<std::string>& names) {
  std::string lines;
  for (const std::string& name : names) lines += EscapeControl(name) + "\n";
  return lines;
}

absl::Status NotOffered(std::string_view format) {
  return InvalidArgument("-o {}: this command does not have it; use table, wide, json or yaml", format);
}

}  // namespace

absl::StatusOr<std::string> Render(OutputFormat format, const Answer& answer) {
  switch (format) {
    case OutputFormat::kTable:
      return answer.table(false);
    case OutputFormat::kWide:
      return answer.table(true);
    case OutputFormat::kJson:
      return DumpJson(Filled(answer));
    case OutputFormat::kYaml:
      return DumpYaml(Filled(answer));
    case OutputFormat::kName:
      if (!answer.names) return NotOffered("name");
      return Lines(*answer.names);
    case OutputFormat::kCsv:
      if (!answer.csv) return NotOffered("csv");
      return answer.csv();
  }
  return std::string();
}

absl::StatusOr<ExitCode> Show(const Context& context, const Answer& answer) {
  TP_ASSIGN_OR_RETURN(const std::string text, Render(context.globals.output, answer));
  context.Print(text);
  return ExitCode::kOk;
}

absl::StatusOr<ExitCode> ShowNote(const Context& context, const std::string& name, const std::string& note) {
  context.Say(note);
  Answer answer;
  answer.table = [](bool) { return std::string(); };
  answer.fill = [&](Json& document) { document["note"] = note; };
  answer.names = std::vector<std::string>{name};
  return Show(context, answer);
}

absl::StatusOr<ExitCode> ShowForecast(const Context& context, const std::string& note,
                                      const v1::QueueForecast& forecast) {
  context.Say("dry run, nothing is changed: " + note);
  Answer answer;
  answer.table = [&](bool wide) { return ForecastText(forecast, wide, context.terminal()); };
  answer.fill = [&](Json& document) {
    document["dry_run"] = true;
    document["note"] = note;
    document["forecast"] = ToJson(forecast);
  };
  return Show(context, answer);
}

}  // namespace tp::cli
