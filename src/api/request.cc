#include "api/request.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <vector>

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include "api/convert.h"
#include "api/errors.h"
#include "auth/digest.h"
#include "base/duration.h"
#include "base/printable.h"
#include "base/utf8.h"
#include "core/ids.h"
#include "core/resource.h"

namespace tp::api {
namespace {

constexpr size_t kMaxRequestId = 128;
constexpr size_t kMaxName = 256;
constexpr size_t kMaxProject = 63;
constexpr size_t kMaxStepName = 30;
constexpr size_t kMaxImage = 1024;
constexpr size_t kMaxLabels = 64;
constexpr size_t kMaxLabelName = 63;
constexpr size_t kMaxLabelValue = 255;
constexpr int kMaxSteps = 32;
constexpr int kMaxProfiles = 16;
// The kernel's limit for one process start is about 2 MiB for arguments and environment together.
constexpr size_t kMaxArgumentBytes = size_t{1} << 20;
// Of all tasks of an array together.
constexpr size_t kMaxArrayBytes = size_t{16} << 20;
constexpr int kDefaultPageSize = 50;
constexpr int kMaxPageSize = 500;
constexpr std::string_view kDefaultProject = "default";
constexpr std::string_view kDefaultStepName = "main";

bool IsSlug(std::string_view text, size_t longest) {
  const auto good = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; };
  return !text.empty() && text.size() <= longest && text.front() != '-' && text.back() != '-' &&
         std::all_of(text.begin(), text.end(), good);
}

bool IsPlainText(std::string_view text) {
  const auto control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  return std::none_of(text.begin(), text.end(), control) && !FirstInvalidUtf8(text);
}

bool HasNul(std::string_view text) { return text.find('\0') != std::string_view::npos; }

absl::Status CheckLabels(const google::protobuf::Map<std::string, std::string>& labels) {
  if (labels.size() > kMaxLabels)
    return FieldError("labels", "{} labels, at most {} are kept", labels.size(), kMaxLabels);
  for (const auto& [name, value] : labels) {
    const auto good = [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) || std::string_view("._/-").find(c) != std::string_view::npos;
    };
    if (name.empty() || name.size() > kMaxLabelName || !std::all_of(name.begin(), name.end(), good)) {
      return FieldError("labels", "label name {} is not usable: 1 to {} of [A-Za-z0-9._/-]", Quoted(name),
                        kMaxLabelName);
    }
    if (value.size() > kMaxLabelValue || !IsPlainText(value)) {
      return FieldError("labels", "value of label {} is not usable: at most {} bytes of text on one line", name,
                        kMaxLabelValue);
    }
  }
  return absl::OkStatus();
}

// A limit or timeout of a step: absent, or positive and of this world.
absl::StatusOr<std::optional<absl::Duration>> ParseLimit(const std::string& field, bool present,
                                                         const google::protobuf::Duration& value) {
  if (!present) return std::optional<absl::Duration>();
  const absl::Duration limit = FromProto(value);
  if (limit <= absl::ZeroDuration() || limit > absl::Milliseconds(kLongestDurationMs)) {
    return FieldError(field, "{} must be above 0 and at most 3650 days", field);
  }
  return std::optional<absl::Duration>(limit);
}

absl::StatusOr<std::optional<int32_t>> ParseRetries(const std::string& field, bool present, int32_t value) {
  if (!present) return std::optional<int32_t>();
  if (value < 0) return FieldError(field, "{} must not be negative", field);
  return std::optional<int32_t>(value);
}

// What its process start takes of the kernel's limit.
size_t ProcessBytes(const v1::StepSpec& spec) {
  size_t bytes = 0;
  for (const std::string& argument : spec.argv()) bytes += argument.size() + 1;
  for (const auto* env : {&spec.env(), &spec.explicit_env()}) {
    for (const auto& [name, value] : *env) bytes += name.size() + value.size() + 2;
  }
  return bytes;
}

absl::Status CheckArguments(const std::string& field, const v1::StepSpec& spec) {
  if (spec.argv().empty() || spec.argv(0).empty())
    return FieldError(field, "nothing to run: give the command after --");
  for (const std::string& argument : spec.argv()) {
    if (HasNul(argument)) return FieldError(field, "an argument holds a NUL byte, which no command can receive");
    if (argument.size() > core::kMaxVariableBytes) {
      return FieldError(field, "an argument has {} bytes, Linux takes at most {} each: put it into a file",
                        argument.size(), core::kMaxVariableBytes);
    }
  }
  const size_t bytes = ProcessBytes(spec);
  if (bytes <= kMaxArgumentBytes) return absl::OkStatus();
  return FieldError(field, "arguments and environment have {} bytes, at most {} are taken: put data into files", bytes,
                    kMaxArgumentBytes);
}

absl::Status CheckProfiles(const std::string& field, const v1::StepSpec& spec) {
  if (spec.profiles_size() > kMaxProfiles) {
    return FieldError(field, "{} --profile flags, at most {} are taken", spec.profiles_size(), kMaxProfiles);
  }
  for (const std::string& profile : spec.profiles()) {
    if (profile.empty() || profile.size() > kMaxName || !IsPlainText(profile)) {
      return FieldError(field, "--profile {} is not `[role[,role...]=]profile[:total]`", Quoted(profile));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ParseStepName(const std::string& field, const v1::StepSpec& spec, bool only_step) {
  if (spec.name().empty() && only_step) return std::string(kDefaultStepName);
  if (IsSlug(spec.name(), kMaxStepName)) return spec.name();
  return FieldError(field, "step name {} is not usable: 1 to {} of [a-z0-9-], no '-' at either end",
                    Quoted(spec.name()), kMaxStepName);
}

// The step before, on success, unless the request says otherwise.
absl::StatusOr<std::optional<core::After>> ParseAfter(const std::string& field, const v1::StepSpec& spec, int index,
                                                      const std::vector<core::StepSpec>& earlier) {
  if (!spec.has_after()) {
    if (index == 0) return std::optional<core::After>();
    return std::optional<core::After>({.step = index - 1, .when = core::AfterWhen::kSuccess});
  }
  const auto found = std::find_if(earlier.begin(), earlier.end(),
                                  [&](const core::StepSpec& step) { return step.name == spec.after().step(); });
  if (found == earlier.end()) {
    return FieldError(field, "no earlier step is called {}: a step can only come after one named before it",
                      Quoted(spec.after().step()));
  }
  core::After after{.step = static_cast<int32_t>(found - earlier.begin()), .when = core::AfterWhen::kSuccess};
  TP_ASSIGN_OR_RETURN(after.when, ParseWhen(field, spec.after().when()));
  return std::optional<core::After>(after);
}

absl::Status ParseLimits(const std::string& prefix, const v1::StepSpec& spec, core::StepSpec* to) {
  TP_ASSIGN_OR_RETURN(to->time_limit, ParseLimit(prefix + "time_limit", spec.has_time_limit(), spec.time_limit()));
  TP_ASSIGN_OR_RETURN(to->start_timeout,
                      ParseLimit(prefix + "start_timeout", spec.has_start_timeout(), spec.start_timeout()));
  TP_ASSIGN_OR_RETURN(to->pending_timeout,
                      ParseLimit(prefix + "pending_timeout", spec.has_pending_timeout(), spec.pending_timeout()));
  TP_ASSIGN_OR_RETURN(to->user_retries,
                      ParseRetries(prefix + "user_retries", spec.has_user_retries(), spec.user_retries()));
  TP_ASSIGN_OR_RETURN(to->infrastructure_retries,
                      ParseRetries(prefix + "infrastructure_retries", spec.has_infrastructure_retries(),
                                   spec.infrastructure_retries()));
  return absl::OkStatus();
}

absl::Status ParseEnv(const std::string& prefix, const v1::StepSpec& spec, core::StepSpec* to) {
  to->env = {spec.env().begin(), spec.env().end()};
  to->explicit_env = {spec.explicit_env().begin(), spec.explicit_env().end()};
  if (auto status = core::CheckUserEnv(to->env, "tp.yaml"); !status.ok()) return WithField(status, prefix + "env");
  if (auto status = core::CheckUserEnv(to->explicit_env, "--env"); !status.ok()) {
    return WithField(status, prefix + "explicit_env");
  }
  return absl::OkStatus();
}

absl::Status ParseArray(const v1::SubmitRunRequest& request, loop::SubmitRun* to) {
  if (to->steps.size() > 1) {
    return FieldError("array", "an array runs one command: submit what follows it as a run of its own, with --after");
  }
  auto array = core::ParseArray(request.array());
  if (!array.ok()) return WithField(array.status(), "array");
  const size_t bytes = ProcessBytes(request.steps(0));
  if (bytes * array->indices.size() > kMaxArrayBytes) {
    return FieldError("array", "arguments and environment have {} bytes for each of {} tasks: put data into files",
                      bytes, array->indices.size());
  }
  to->array = *std::move(array);
  return absl::OkStatus();
}

absl::StatusOr<core::StepSpec> ParseStep(const v1::SubmitRunRequest& request, int index,
                                         const std::vector<core::StepSpec>& earlier) {
  const v1::StepSpec& spec = request.steps(index);
  const std::string prefix = fmt::format("steps[{}].", index);
  core::StepSpec to;
  TP_ASSIGN_OR_RETURN(to.name, ParseStepName(prefix + "name", spec, request.steps_size() == 1));
  for (const core::StepSpec& other : earlier) {
    if (other.name == to.name) return FieldError(prefix + "name", "two steps are called {}: names are unique", to.name);
  }
  TP_RETURN_IF_ERROR(CheckArguments(prefix + "argv", spec));
  TP_RETURN_IF_ERROR(CheckProfiles(prefix + "profiles", spec));
  if (spec.image().size() > kMaxImage || !IsPlainText(spec.image())) {
    return FieldError(prefix + "image", "image is not usable: at most {} bytes on one line", kMaxImage);
  }
  to.argv = {spec.argv().begin(), spec.argv().end()};
  to.profiles = {spec.profiles().begin(), spec.profiles().end()};
  to.image = spec.image();
  TP_RETURN_IF_ERROR(ParseEnv(prefix, spec, &to));
  TP_ASSIGN_OR_RETURN(to.after, ParseAfter(prefix + "after", spec, index, earlier));
  TP_RETURN_IF_ERROR(ParseLimits(prefix, spec, &to));
  return to;
}

}  // namespace

absl::StatusOr<core::AfterWhen> ParseWhen(const std::string& field, v1::AfterWhen when) {
  if (when == v1::AFTER_WHEN_UNSPECIFIED) return core::AfterWhen::kSuccess;
  if (!v1::AfterWhen_IsValid(when)) return FieldError(field, "after is not success, failure or always");
  return static_cast<core::AfterWhen>(static_cast<int>(when) - 1);
}

absl::StatusOr<std::vector<core::Notice>> ParseNotices(const v1::SubmitRunRequest& request,
                                                       const core::Receivers& receivers) {
  std::vector<core::Notice> notices;
  for (const v1::Notice& notice : request.notify()) {
    core::Notice& to = notices.emplace_back();
    to.to = notice.to();
    for (const int event : notice.on()) {
      const auto known = FromProto(static_cast<v1::NoticeEvent>(event));
      if (!known) return FieldError("notify", "{} is not an event of this server: update it or tp", event);
      to.on.push_back(*known);
    }
  }
  if (auto status = core::CheckNotices(notices, receivers); !status.ok()) return WithField(status, "notify");
  return notices;
}

absl::StatusOr<loop::SubmitRun> ParseSubmit(const v1::SubmitRunRequest& request) {
  loop::SubmitRun to;
  if (request.name().size() > kMaxName || !IsPlainText(request.name())) {
    return FieldError("name", "name is not usable: at most {} bytes on one line", kMaxName);
  }
  to.name = request.name();
  to.project = request.project().empty() ? std::string(kDefaultProject) : request.project();
  if (!IsSlug(to.project, kMaxProject)) {
    return FieldError("project", "project {} is not usable: 1 to {} of [a-z0-9-], no '-' at either end",
                      Quoted(to.project), kMaxProject);
  }
  TP_RETURN_IF_ERROR(CheckLabels(request.labels()));
  to.labels = {request.labels().begin(), request.labels().end()};
  if (!request.snapshot_id().empty()) TP_RETURN_IF_ERROR(CheckSha256("snapshot_id", request.snapshot_id()));
  to.snapshot_id = request.snapshot_id();
  if (request.steps_size() < 1 || request.steps_size() > kMaxSteps) {
    return FieldError("steps", "a run has 1 to {} steps, not {}", kMaxSteps, request.steps_size());
  }
  for (int index = 0; index < request.steps_size(); ++index) {
    TP_ASSIGN_OR_RETURN(core::StepSpec step, ParseStep(request, index, to.steps));
    to.steps.push_back(std::move(step));
  }
  if (request.has_priority()) to.priority = request.priority();
  to.hold = request.hold();
  if (!request.array().empty()) TP_RETURN_IF_ERROR(ParseArray(request, &to));
  return to;
}

absl::Status CheckRequestId(std::string_view request_id) {
  const auto printable = [](char c) { return c > 0x20 && c < 0x7f; };
  if (!request_id.empty() && request_id.size() <= kMaxRequestId &&
      std::all_of(request_id.begin(), request_id.end(), printable)) {
    return absl::OkStatus();
  }
  return FieldError("request_id",
                    "request_id is required: 1 to {} printable characters, new for each request and the same when it "
                    "is repeated",
                    kMaxRequestId);
}

std::string DeterministicBytes(const google::protobuf::Message& message) {
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    message.SerializeToCodedStream(&coded);
  }
  return bytes;
}

std::string BodySha256(std::string_view method, const google::protobuf::Message& request) {
  return auth::Sha256Hex(fmt::format("{}\n{}", method, DeterministicBytes(request)));
}

absl::StatusOr<store::RunFilter> ParseRunFilter(const v1::ListRunsRequest& request) {
  store::RunFilter filter;
  if (!request.owner().empty()) filter.owner = request.owner();
  if (!request.project().empty()) filter.project = request.project();
  for (const int state : request.states()) {
    const auto word = FromProto(static_cast<v1::RunState>(state));
    if (!word) return FieldError("states", "{} is not a state of this server: update it or tp", state);
    filter.words.push_back(*word);
  }
  if (request.has_active_after()) filter.changed_after = FromProto(request.active_after());
  filter.labels = {request.labels().begin(), request.labels().end()};
  filter.with_removed = request.show_removed();
  return filter;
}

absl::StatusOr<int> ParsePageSize(int32_t page_size) {
  if (page_size < 0) return FieldError("page_size", "page_size must not be negative");
  return page_size == 0 ? kDefaultPageSize : std::min(page_size, kMaxPageSize);
}

absl::Status CheckSha256(std::string_view field, std::string_view text) {
  const auto hex = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  if (text.size() == 64 && std::all_of(text.begin(), text.end(), hex)) return absl::OkStatus();
  return FieldError(field, "{} is not a SHA-256: 64 lower-case hex digits", field);
}

}  // namespace tp::api
