#include "cli/submission.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string_view>

#include "base/status.h"
#include "cli/render/text.h"
#include "cli/render/time.h"
#include "cli/secrets.h"

namespace tp::cli {
namespace {

// Programs that run another one: a job is called after what they run.
constexpr std::array<std::string_view, 20> kInterpreters = {
    "python",    "bash",   "sh",      "dash", "zsh",  "env",     "torchrun", "accelerate", "uv",   "poetry",
    "deepspeed", "mpirun", "mpiexec", "perl", "node", "Rscript", "ruby",     "nohup",      "nice", "time",
};
// What some of them want next: `uv run`, `accelerate launch`.
constexpr std::array<std::string_view, 2> kVerbs = {"run", "launch"};
constexpr std::array<std::string_view, 6> kScriptSuffixes = {".py", ".sh", ".pl", ".js", ".R", ".rb"};

std::string_view BaseName(std::string_view path) {
  while (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
  return path.substr(path.rfind('/') + 1);
}

bool EndsWith(std::string_view text, std::string_view suffix) {
  return text.size() > suffix.size() && text.substr(text.size() - suffix.size()) == suffix;
}

bool IsInterpreter(std::string_view word) {
  std::string_view name = BaseName(word);
  if (name.substr(0, 6) == "python") name = name.substr(0, 6);  // python3.11
  if (std::find(kVerbs.begin(), kVerbs.end(), word) != kVerbs.end()) return true;
  return std::find(kInterpreters.begin(), kInterpreters.end(), name) != kInterpreters.end();
}

bool IsScript(std::string_view word) {
  return std::any_of(kScriptSuffixes.begin(), kScriptSuffixes.end(),
                     [&](std::string_view suffix) { return EndsWith(word, suffix); });
}

bool IsOption(std::string_view word) { return !word.empty() && word.front() == '-'; }
bool IsAssignment(std::string_view word) { return word.find('=') != std::string_view::npos; }

std::string Stem(std::string_view word) {
  std::string_view name = BaseName(word);
  const size_t dot = name.rfind('.');
  return std::string(dot == std::string_view::npos || dot == 0 ? name : name.substr(0, dot));
}

// The program behind the interpreters. An option's value could pass for one, so that a script is
// looked for first.
std::optional<std::string> ProgramName(const std::vector<std::string>& argv) {
  auto rest = std::find_if_not(argv.begin(), argv.end(),
                               [](const std::string& word) { return IsInterpreter(word) || IsAssignment(word); });
  if (rest == argv.end()) return std::nullopt;
  if (!IsOption(*rest)) return Stem(*rest);
  if (const auto script = std::find_if(rest, argv.end(), IsScript); script != argv.end()) return Stem(*script);
  if (const auto flag = std::find(rest, argv.end(), "-m"); flag != argv.end() && flag + 1 != argv.end()) {
    const std::string& module = *(flag + 1);
    return module.substr(module.rfind('.') + 1);
  }
  return std::nullopt;
}

bool IsVariableName(std::string_view name) {
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name.front())) != 0) return false;
  return std::all_of(name.begin(), name.end(),
                     [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; });
}

absl::Status CheckUtf8(std::string_view text, std::string_view what) {
  if (IsUtf8(text)) return absl::OkStatus();
  return InvalidArgument("{} {}: not UTF-8", what, EscapeControl(text));
}

absl::Status AddVariable(const std::string& flag, google::protobuf::Map<std::string, std::string>& environment) {
  const size_t equals = flag.find('=');
  const std::string name = flag.substr(0, equals);
  if (!IsVariableName(name)) {
    return InvalidArgument("--env {}: letters, digits and _ make a variable's name; write NAME=value", name);
  }
  if (equals != std::string::npos) {
    environment[name] = flag.substr(equals + 1);
  } else if (const char* own = std::getenv(name.c_str()); own != nullptr) {
    environment[name] = own;
  } else {
    return InvalidArgument("--env {}: not set here; write {}=value", name, name);
  }
  // The value may be a secret: it is not repeated.
  if (!IsUtf8(environment[name])) return InvalidArgument("--env {}: its value is not UTF-8", name);
  return absl::OkStatus();
}

absl::Status FillStep(const SubmitFlags& flags, const std::vector<std::string>& argv, v1::StepSpec& step) {
  if (argv.empty() || argv.front().empty()) {
    return InvalidArgument("no command: write it behind --, as in: tp submit --profile h200:8 -- python3 train.py");
  }
  for (const std::string& word : argv) {
    TP_RETURN_IF_ERROR(CheckUtf8(word, "argument"));
    step.add_argv(word);
  }
  for (const std::string& profile : flags.profiles) {
    TP_RETURN_IF_ERROR(CheckUtf8(profile, "--profile"));
    step.add_profiles(profile);
  }
  for (const std::string& flag : flags.environment) {
    TP_RETURN_IF_ERROR(AddVariable(flag, *step.mutable_explicit_env()));
  }
  TP_RETURN_IF_ERROR(CheckUtf8(flags.image, "--image"));
  step.set_image(flags.image);
  if (!flags.time_limit.empty()) {
    TP_ASSIGN_OR_RETURN(const absl::Duration limit, ParseTimeSpan(flags.time_limit, "--time-limit"));
    *step.mutable_time_limit() = ToProto(limit);
  }
  return absl::OkStatus();
}

absl::Status AddAfter(const std::string& flag, v1::RunDependency& after) {
  TP_RETURN_IF_ERROR(CheckUtf8(flag, "--after"));
  const size_t colon = flag.find(':');
  const std::string_view when = colon == std::string::npos ? "success" : std::string_view(flag).substr(colon + 1);
  after.set_run(flag.substr(0, colon));
  if (when == "success") {
    after.set_when(v1::AFTER_WHEN_SUCCESS);
  } else if (when == "failure") {
    after.set_when(v1::AFTER_WHEN_FAILURE);
  } else if (when == "always") {
    after.set_when(v1::AFTER_WHEN_ALWAYS);
  } else {
    return InvalidArgument("--after {}: write RUN, or RUN:failure or RUN:always", EscapeControl(flag));
  }
  return absl::OkStatus();
}

}  // namespace

std::string DefaultName(const std::vector<std::string>& argv, const std::string& directory) {
  return ProgramName(argv).value_or(std::string(BaseName(directory)));
}

absl::Status ParseLabels(const std::vector<std::string>& pairs,
                         google::protobuf::Map<std::string, std::string>& labels) {
  for (const std::string& pair : pairs) {
    TP_RETURN_IF_ERROR(CheckUtf8(pair, "--label"));
    const size_t equals = pair.find('=');
    if (equals == 0 || equals == std::string::npos) return InvalidArgument("--label {}: write key=value", pair);
    labels[pair.substr(0, equals)] = pair.substr(equals + 1);
  }
  return absl::OkStatus();
}

absl::StatusOr<v1::SubmitRunRequest> BuildSubmission(const SubmitFlags& flags, const std::vector<std::string>& argv) {
  v1::SubmitRunRequest request;
  TP_RETURN_IF_ERROR(FillStep(flags, argv, *request.add_steps()));
  TP_RETURN_IF_ERROR(ParseLabels(flags.labels, *request.mutable_labels()));
  std::error_code error;
  const std::string directory = std::filesystem::canonical(flags.directory, error).string();
  const std::string name = flags.name.empty() ? DefaultName(argv, error ? flags.directory : directory) : flags.name;
  TP_RETURN_IF_ERROR(CheckUtf8(name, "--name"));
  TP_RETURN_IF_ERROR(CheckUtf8(flags.project, "--project"));
  request.set_name(name);
  request.set_project(flags.project);
  if (flags.priority) request.set_priority(*flags.priority);
  TP_RETURN_IF_ERROR(CheckUtf8(flags.array, "--array"));
  request.set_array(flags.array);
  request.set_hold(flags.hold);
  for (const std::string& after : flags.after) TP_RETURN_IF_ERROR(AddAfter(after, *request.add_after()));
  return request;
}

}  // namespace tp::cli
