#include "cli/completion.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string_view>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "absl/time/clock.h"
#include "base/status.h"
#include "cli/bulk.h"
#include "cli/contexts.h"
#include "cli/render/quota.h"
#include "cli/render/runs.h"
#include "cli/render/text.h"
#include "cli/run_list.h"

namespace tp::cli {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(1);
constexpr int64_t kMostRuns = 100;
constexpr const char* kFiles = ":files";
constexpr const char* kDirectories = ":directories";

struct Candidate {
  std::string value;
  std::string description;
};
using Candidates = std::vector<Candidate>;

// The command line as far as it is typed.
struct Line {
  const CLI::App* command = nullptr;
  std::string verb;                      // the first command's name
  std::vector<std::string> positional;   // of the innermost command, without the word at the cursor
  const CLI::Option* awaited = nullptr;  // the flag whose value the cursor is at
  bool in_job_command = false;           // behind --
};

const CLI::Option* FindFlag(const CLI::App& command, std::string_view word) {
  for (const CLI::App* app = &command; app != nullptr; app = app->get_parent()) {
    for (const CLI::Option* option : app->get_options()) {
      if (option->nonpositional() && option->check_name(std::string(word))) return option;
    }
  }
  return nullptr;
}

bool TakesValue(const CLI::Option& option) { return option.get_type_size() != 0; }

const CLI::App* FindCommand(const CLI::App& command, const std::string& word) {
  for (const CLI::App* candidate : command.get_subcommands(nullptr)) {
    const auto& aliases = candidate->get_aliases();
    const bool alias = std::find(aliases.begin(), aliases.end(), word) != aliases.end();
    if (candidate->get_name() == word || alias) return candidate;
  }
  return nullptr;
}

void TakeWord(Line& line, const std::string& word) {
  if (line.awaited != nullptr) {
    line.awaited = nullptr;
  } else if (word == "--") {
    line.in_job_command = true;
  } else if (word.size() > 1 && word.front() == '-') {
    const CLI::Option* flag = FindFlag(*line.command, word.substr(0, word.find('=')));
    const bool has_value = word.find('=') != std::string::npos;
    if (flag != nullptr && TakesValue(*flag) && !has_value) line.awaited = flag;
  } else if (const CLI::App* inner = line.positional.empty() ? FindCommand(*line.command, word) : nullptr) {
    line.command = inner;
    if (line.verb.empty()) line.verb = inner->get_name();
  } else {
    line.positional.push_back(word);
  }
}

Candidates Plain(std::initializer_list<const char*> words) {
  Candidates candidates;
  for (const char* word : words) candidates.push_back({word, ""});
  return candidates;
}

Candidates RunStates() {
  Candidates candidates;
  for (int state = v1::RUN_STATE_UNSPECIFIED + 1; state <= v1::RunState_MAX; ++state) {
    candidates.push_back({StateName(static_cast<v1::RunState>(state)), ""});
  }
  return candidates;
}

// Those with which the command can do something, the newest first.
absl::StatusOr<Candidates> Runs(Context& context, const std::string& verb) {
  TP_ASSIGN_OR_RETURN(Client* const client, context.Connect(kPatience));
  ListFlags flags;
  flags.limit = kMostRuns;
  for (const v1::RunState state : StatesFor(verb)) flags.states.push_back(StateName(state));
  TP_ASSIGN_OR_RETURN(const RunList list, ListRuns(*client, flags, absl::Now()));
  Candidates candidates = {{"@last", "your newest run"}};
  for (const v1::Run& run : list.runs) {
    const v1::Step* step = CurrentStep(run);
    const std::string command = step == nullptr ? "" : ShellQuote(step->spec().argv());
    candidates.push_back({run.id(), fmt::format("{}  {}", StateName(run.state()), command)});
  }
  return candidates;
}

absl::StatusOr<Candidates> Profiles(Context& context) {
  TP_ASSIGN_OR_RETURN(Client* const client, context.Connect(kPatience));
  TP_ASSIGN_OR_RETURN(const v1::ListProfilesResponse response,
                      client->Call(&v1::RegistryService::Stub::ListProfiles, v1::ListProfilesRequest()));
  Candidates candidates;
  for (const v1::Profile& profile : response.profiles()) {
    candidates.push_back({profile.name(), fmt::format("{} {}", profile.default_shape(), profile.description())});
  }
  return candidates;
}

absl::StatusOr<Candidates> SeriesNames(Context& context, bool with_limit) {
  TP_ASSIGN_OR_RETURN(Client* const client, context.Connect(kPatience));
  TP_ASSIGN_OR_RETURN(const v1::ListSeriesResponse response,
                      client->Call(&v1::RegistryService::Stub::ListSeries, v1::ListSeriesRequest()));
  Candidates candidates;
  for (const v1::Series& series : response.series()) {
    candidates.push_back({series.name() + (with_limit ? "=" : ""), series.description()});
  }
  return candidates;
}

// Users with quota; none for those who may not see them.
absl::StatusOr<Candidates> UserNames(Context& context) {
  TP_ASSIGN_OR_RETURN(Client* const client, context.Connect(kPatience));
  TP_ASSIGN_OR_RETURN(const v1::ListQuotasResponse response,
                      client->Call(&v1::QuotaService::Stub::ListQuotas, v1::ListQuotasRequest()));
  Candidates candidates;
  for (const v1::Standing& standing : response.standings()) candidates.push_back({standing.user(), ""});
  return candidates;
}

absl::StatusOr<Candidates> RuleNumbers(Context& context) {
  TP_ASSIGN_OR_RETURN(Client* const client, context.Connect(kPatience));
  TP_ASSIGN_OR_RETURN(const v1::ListQuotasResponse response,
                      client->Call(&v1::QuotaService::Stub::ListQuotas, v1::ListQuotasRequest()));
  Candidates candidates;
  for (const v1::Standing& standing : response.standings()) {
    for (const v1::QuotaRule& rule : standing.rules()) {
      candidates.push_back(
          {std::to_string(rule.id()), fmt::format("{}: {}", standing.user(), LimitsText(rule.limits()))});
    }
  }
  return candidates;
}

absl::StatusOr<Candidates> ResultPaths(Context& context, const Line& line) {
  if (line.positional.empty()) return Candidates();
  TP_ASSIGN_OR_RETURN(Client* const client, context.Connect(kPatience));
  v1::ListResultsRequest request;
  request.set_run(line.positional.front());
  TP_ASSIGN_OR_RETURN(const v1::ListResultsResponse response,
                      client->Call(&v1::RunService::Stub::ListResults, request));
  Candidates candidates;
  for (const v1::ResultFile& file : response.files()) candidates.push_back({file.path(), ""});
  return candidates;
}

absl::StatusOr<Candidates> ContextNames() {
  TP_ASSIGN_OR_RETURN(const Contexts contexts, LoadContexts(ContextsFile()));
  Candidates candidates;
  for (const auto& [name, server] : contexts.servers) candidates.push_back({name, server.address});
  return candidates;
}

// Values of a flag or an argument, by its name.
absl::StatusOr<Candidates> ValuesOf(const std::string& name, Context& context, const Line& line) {
  if (name == "RUN" || name == "--run") return Runs(context, line.verb);
  if (name == "--profile") return Profiles(context);
  if (name == "SERIES" || name == "--series") return SeriesNames(context, line.command->get_name() == "set");
  if (name == "USER" || name == "--user") return UserNames(context);
  if (name == "RULE") return RuleNumbers(context);
  if (name == "--context" || name == "CONTEXT") return ContextNames();
  if (name == "PATH") return ResultPaths(context, line);
  if (name == "--state" || (name == "--until" && line.verb == "wait")) return RunStates();
  if (name == "--output") return Plain({"table", "wide", "json", "yaml", "name", "csv"});
  if (name == "--by") return Plain({"user", "project", "series", "profile", "day", "month", "run"});
  if (name == "SHELL") return Plain({"bash", "zsh", "fish"});
  if (name == "--dir" || (name == "--to" && line.verb == "results")) return Plain({kDirectories});
  if (name == "--token-file" || name == "--ca-file") return Plain({kFiles});
  return Candidates();
}

Candidates Commands(const CLI::App& command) {
  Candidates candidates;
  for (const CLI::App* inner : command.get_subcommands(nullptr)) {
    candidates.push_back({inner->get_name(), inner->get_description()});
  }
  return candidates;
}

Candidates Flags(const CLI::App& command) {
  Candidates candidates;
  for (const CLI::App* app = &command; app != nullptr; app = app->get_parent()) {
    for (const CLI::Option* option : app->get_options()) {
      for (const std::string& name : option->get_lnames()) {
        candidates.push_back({"--" + name, option->get_description()});
      }
    }
  }
  return candidates;
}

// The argument that the cursor is at: the next one, the last one again where it may be repeated.
std::optional<std::string> ArgumentAt(const Line& line) {
  std::vector<const CLI::Option*> arguments;
  for (const CLI::Option* option : line.command->get_options()) {
    if (option->get_positional()) arguments.push_back(option);
  }
  if (arguments.empty()) return std::nullopt;
  const size_t index = line.positional.size();
  if (index < arguments.size()) return arguments[index]->get_name(true);
  return arguments.back()->get_expected_max() > 1 ? std::optional(arguments.back()->get_name(true)) : std::nullopt;
}

std::string LongName(const CLI::Option& option) {
  return option.get_lnames().empty() ? option.get_name() : "--" + option.get_lnames().front();
}

Candidates OrNone(absl::StatusOr<Candidates> candidates) {
  return candidates.ok() ? *std::move(candidates) : Candidates();
}

void Append(Candidates& to, Candidates more) {
  to.insert(to.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

// `--flag=begun`: the candidates are whole words again.
Candidates JoinedValues(const std::string& word, Context& context, const Line& line) {
  const std::string flag = word.substr(0, word.find('='));
  const CLI::Option* option = FindFlag(*line.command, flag);
  if (option == nullptr) return {};
  Candidates candidates = OrNone(ValuesOf(LongName(*option), context, line));
  for (Candidate& candidate : candidates) candidate.value = fmt::format("{}={}", flag, candidate.value);
  return candidates;
}

Candidates CandidatesAt(const Line& line, const std::string& word, Context& context) {
  if (line.in_job_command) return Plain({kFiles});
  if (line.awaited != nullptr) return OrNone(ValuesOf(LongName(*line.awaited), context, line));
  if (!word.empty() && word.front() == '-') {
    return word.find('=') == std::string::npos ? Flags(*line.command) : JoinedValues(word, context, line);
  }
  Candidates candidates;
  if (line.positional.empty()) candidates = Commands(*line.command);
  if (const auto argument = ArgumentAt(line)) Append(candidates, OrNone(ValuesOf(*argument, context, line)));
  return candidates;
}

bool IsForTheShell(const Candidate& candidate) { return candidate.value == kFiles || candidate.value == kDirectories; }

}  // namespace

std::string Complete(const CLI::App& app, Context& context, const std::vector<std::string>& words) {
  Line line;
  line.command = &app;
  for (size_t i = 0; i + 1 < words.size(); ++i) TakeWord(line, words[i]);
  const std::string word = words.empty() ? "" : words.back();
  std::string lines;
  for (const Candidate& candidate : CandidatesAt(line, word, context)) {
    if (!IsForTheShell(candidate) && candidate.value.compare(0, word.size(), word) != 0) continue;
    lines += EscapeControl(candidate.value);
    if (!candidate.description.empty()) lines += "\t" + FitWidth(EscapeControl(candidate.description), 60);
    lines += "\n";
  }
  return lines;
}

}  // namespace tp::cli
