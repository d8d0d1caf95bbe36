#include "cli/project_file.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "base/status.h"
#include "decode/text_or_list.h"
#include "decode/yaml_tree.h"

namespace tp::cli {
namespace {

using decode::At;
using decode::Choice;
using decode::Entries;
using decode::Key;
using decode::ListOf;
using decode::MapOf;
using decode::Optional;
using decode::Problems;
using decode::Record;
using decode::RequiredKey;
using decode::Text;
using decode::Type;
using decode::YamlValue;

constexpr absl::Duration kShortest = absl::Seconds(1);
constexpr absl::Duration kLongest = absl::Hours(24 * 3650);

std::optional<std::string> WrongVariable(const std::string& name) {
  const auto word = [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  };
  if (name.empty() || (name[0] >= '0' && name[0] <= '9') || !std::all_of(name.begin(), name.end(), word)) {
    return fmt::format("{} is not a variable's name: write letters, digits and _, no digit first", Quoted(name));
  }
  if (name.substr(0, 3) == "TP_") return fmt::format("{}: names that begin with TP_ belong to tp", name);
  return std::nullopt;
}

Type<Entries<std::string, std::string>> EnvType() {
  return MapOf(Text("a variable's name", WrongVariable), decode::Scalar("text"), "mapping of variables");
}

Type<ProjectAfter> AfterType() {
  using When = ProjectAfter::When;
  const auto when = Choice<When>({{"success", When::kSuccess}, {"failure", When::kFailure}, {"always", When::kAlways}});
  return Record<ProjectAfter>("after",
                              {Key("step", &ProjectAfter::step, At(decode::Name("name")), "Default: the step before."),
                               Key("when", &ProjectAfter::when, when, "How it must have ended.")});
}

Type<ProjectStep> StepType() {
  return Record<ProjectStep>(
      "a step", {RequiredKey("command", &ProjectStep::command, decode::Command(), "What it runs."),
                 Key("profile", &ProjectStep::profiles, decode::ProfileFlags(), "Its hardware."),
                 Key("image", &ProjectStep::image, Text("text"), "Its container image."),
                 Key("env", &ProjectStep::env, EnvType(), "Over the project's."),
                 Key("time_limit", &ProjectStep::time_limit, Optional(decode::DurationBetween(kShortest, kLongest)),
                     "Its most running time."),
                 Key("after", &ProjectStep::after, Optional(AfterType()), "Default: the step before, on success.")});
}

Type<ProjectNotice> NoticeType() {
  using Event = ProjectNotice::Event;
  const auto event = Choice<Event>({{"succeeded", Event::kSucceeded},
                                    {"failed", Event::kFailed},
                                    {"stopped", Event::kStopped},
                                    {"paused", Event::kPaused},
                                    {"idle", Event::kIdle}});
  const auto wrong = [](const std::string& to) -> std::optional<std::string> {
    if (to.find("://") == std::string::npos) return std::nullopt;
    return fmt::format("{}: addresses are for admins to set up; name one of their receivers, or a mail address",
                       Quoted(to));
  };
  return Record<ProjectNotice>(
      "a notice", {RequiredKey("to", &ProjectNotice::to, Text("receiver or mail address", wrong), "Who is told."),
                   RequiredKey("on", &ProjectNotice::on, ListOf(event, "list of events"), "When.")});
}

Type<ProjectFile> MakeProjectFileType() {
  return Record<ProjectFile>(
      "tp.yaml",
      {Key("name", &ProjectFile::name, Text("text"), "Name of its runs."),
       Key("image", &ProjectFile::image, Text("text"), "Container image, where the backend uses one."),
       Key("command", &ProjectFile::command, decode::Command(), "What is run where nothing stands behind --."),
       Key("profile", &ProjectFile::profiles, decode::ProfileFlags(), "Hardware, where there is no --profile."),
       Key("env", &ProjectFile::env, EnvType(), "Environment; series, profile and --env win over it."),
       Key("labels", &ProjectFile::labels, MapOf(Text("label"), Text("text"), "mapping of text"), "Of its runs."),
       Key("steps", &ProjectFile::steps, MapOf(decode::Name("name"), StepType(), "mapping of name to a step"),
           "Further steps, for --then."),
       Key("then", &ProjectFile::then, ListOf(At(decode::Name("step")), "list of steps"),
           "The steps that follow where there is no --then: of `steps`, or recipes of the deployment."),
       Key("notify", &ProjectFile::notify, ListOf(NoticeType(), "list of notices"), "Who is told of what.")});
}

// A step waits for one above it, or for the command itself (`main`).
void CheckOrder(const ProjectFile& project, Problems& problems) {
  std::vector<std::string> known = {"main"};
  for (const auto& entry : project.steps) {
    if (entry.key == "main") problems.Add(entry.at, "step main is the command itself; give this one another name");
    if (entry.value.command.empty()) problems.Add(entry.at, fmt::format("step {} has an empty command", entry.key));
    if (const auto& after = entry.value.after; after && !after->step.value.empty()) {
      const bool found = std::find(known.begin(), known.end(), after->step.value) != known.end();
      if (!found) decode::AddUnknown(after->step.at, "step", after->step.value, "what comes before", known, problems);
    }
    known.push_back(entry.key);
  }
}

}  // namespace

const Type<ProjectFile>& ProjectFileType() {
  static const Type<ProjectFile> type = MakeProjectFileType();
  return type;
}

absl::StatusOr<ProjectFile> ParseProjectFile(const std::string& file, std::string_view text) {
  Problems problems(file);
  ProjectFile project;
  const std::optional<YamlValue> root = decode::ParseYaml(text, problems);
  if (root && ProjectFileType().decode(*root, problems, project)) CheckOrder(project, problems);
  TP_RETURN_IF_ERROR(decode::ToStatus({&problems}));
  return project;
}

absl::StatusOr<std::optional<ProjectFile>> ReadProjectFile(const std::string& directory) {
  const std::string path = fmt::format("{}/{}", directory, kProjectFileName);
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return std::nullopt;
  std::ifstream stream(path, std::ios::binary);
  std::string text(decode::kMaxFileBytes + 1, '\0');  // one more than is accepted, so that it is refused
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!stream.is_open() || stream.bad()) return FailedPrecondition("cannot read {}: check its permissions", path);
  text.resize(static_cast<size_t>(stream.gcount()));
  const std::string name = directory == "." ? std::string(kProjectFileName) : path;
  TP_ASSIGN_OR_RETURN(ProjectFile project, ParseProjectFile(name, text));
  return project;
}

}  // namespace tp::cli
