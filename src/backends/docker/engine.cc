#include "backends/docker/engine.h"

#include <algorithm>
#include <array>
#include <thread>

#include <fmt/format.h>

#include "absl/strings/ascii.h"
#include "absl/time/clock.h"
#include "backends/docker/json_access.h"
#include "base/status.h"

namespace tp::docker {
namespace {

using Json = nlohmann::json;

constexpr int kNotModified = 304;
constexpr int kNotFound = 404;
constexpr int kConflict = 409;
constexpr int kServerError = 500;
constexpr absl::Duration kExecutePoll = absl::Milliseconds(5);
constexpr absl::Duration kEventsIdle = absl::Minutes(5);
constexpr absl::Duration kPullIdle = absl::Minutes(2);

// What engines say of an image that is not there for them, in the middle of an answer; all else may pass.
bool IsForGood(const std::string& error) {
  constexpr std::array<std::string_view, 7> kForGood = {"not found",        "not exist",    "manifest unknown",
                                                        "denied",           "unauthorized", "no matching manifest",
                                                        "invalid reference"};
  const std::string lower = absl::AsciiStrToLower(error);
  return std::any_of(kForGood.begin(), kForGood.end(),
                     [&](std::string_view words) { return lower.find(words) != std::string::npos; });
}

std::string WordsOf(const EngineResponse& response) {
  const Json json = Json::parse(response.body, nullptr, false);
  if (json.is_object() && json.contains("message") && json["message"].is_string()) {
    return json["message"].get<std::string>();
  }
  return response.body.empty() ? fmt::format("HTTP {}", response.status) : response.body.substr(0, 500);
}

std::string TextOf(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

std::string FilterQuery(const std::vector<std::string>& labels) { return UrlEncode(TextOf({{"label", labels}})); }

absl::Status Broken(std::string_view what) {
  return Unavailable("the docker engine's answer about {} cannot be read: is it a docker engine?", what);
}

// `pulling: 42 %` out of the layers' progress so far.
class PullProgress {
 public:
  std::string Take(const Json& line) {
    const std::string id = TextAt(line, "id");
    const auto detail = line.find("progressDetail");
    if (!id.empty() && detail != line.end() && detail->is_object() && detail->contains("total") &&
        (*detail)["total"].is_number() && detail->contains("current") && (*detail)["current"].is_number()) {
      layers_[id] = {(*detail)["current"].get<double>(), (*detail)["total"].get<double>()};
    }
    double current = 0;
    double total = 0;
    for (const auto& [layer, bytes] : layers_) {
      current += bytes.first;
      total += bytes.second;
    }
    return total > 0 ? fmt::format("{:.0f} %", 100 * current / total) : TextAt(line, "status");
  }

 private:
  std::map<std::string, std::pair<double, double>> layers_;
};

}  // namespace

std::string UrlEncode(std::string_view text) {
  constexpr std::string_view kPlain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
  std::string encoded;
  for (const char c : text) {
    if (kPlain.find(c) != std::string_view::npos) {
      encoded += c;
    } else {
      encoded += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return encoded;
}

absl::StatusOr<EngineAnswer> Engine::Call(const EngineRequest& request, absl::Time deadline) {
  TP_ASSIGN_OR_RETURN(const EngineResponse response, transport_.Send(request, deadline));
  EngineAnswer answer{.kind = EngineAnswer::Kind::kDone, .status = response.status, .words = ""};
  if (response.status < 300 || response.status == kNotModified) return answer;
  answer.words = WordsOf(response);
  answer.kind = response.status == kNotFound   ? EngineAnswer::Kind::kMissing
                : response.status == kConflict ? EngineAnswer::Kind::kConflict
                                               : EngineAnswer::Kind::kRefused;
  // Podman's way to say that a name is taken.
  if (response.status == kServerError && answer.words.find("already in use") != std::string::npos) {
    answer.kind = EngineAnswer::Kind::kConflict;
  }
  return answer;
}

absl::StatusOr<EngineFacts> Engine::Facts(absl::Time deadline) {
  TP_ASSIGN_OR_RETURN(const EngineResponse version, transport_.Send({"GET", "/version", ""}, deadline));
  if (version.status != 200) return Broken("its version");
  TP_ASSIGN_OR_RETURN(const EngineResponse info, transport_.Send({"GET", "/info", ""}, deadline));
  if (info.status != 200) return Broken("itself");
  return ReadFacts(version.body, info.body);
}

absl::StatusOr<EngineAnswer> Engine::Create(const std::string& name, const std::string& body, absl::Time deadline) {
  return Call({"POST", "/containers/create?name=" + UrlEncode(name), body}, deadline);
}

absl::StatusOr<EngineAnswer> Engine::Start(const std::string& name, absl::Time deadline) {
  return Call({"POST", fmt::format("/containers/{}/start", UrlEncode(name)), ""}, deadline);
}

absl::StatusOr<EngineAnswer> Engine::Kill(const std::string& name, const std::string& signal, absl::Time deadline) {
  return Call({"POST", fmt::format("/containers/{}/kill?signal={}", UrlEncode(name), UrlEncode(signal)), ""}, deadline);
}

absl::StatusOr<EngineAnswer> Engine::Remove(const std::string& name, absl::Time deadline) {
  return Call({"DELETE", fmt::format("/containers/{}?force=1&v=1", UrlEncode(name)), ""}, deadline);
}

absl::StatusOr<std::string> Engine::InspectText(const std::string& name, absl::Time deadline) {
  TP_ASSIGN_OR_RETURN(EngineResponse response,
                      transport_.Send({"GET", fmt::format("/containers/{}/json", UrlEncode(name)), ""}, deadline));
  if (response.status == kNotFound) return std::string();
  if (response.status != 200) return Unavailable("the docker engine: {}", WordsOf(response));
  return std::move(response.body);
}

absl::StatusOr<std::optional<Inspected>> Engine::Inspect(const std::string& name, absl::Time deadline) {
  TP_ASSIGN_OR_RETURN(const std::string text, InspectText(name, deadline));
  if (text.empty()) return std::optional<Inspected>();
  std::optional<Inspected> inspected = ParseInspect(text);
  if (!inspected) return Broken(name);
  return inspected;
}

absl::StatusOr<std::vector<Container>> Engine::List(const std::vector<std::string>& labels, bool running,
                                                    absl::Time deadline) {
  const std::string path = fmt::format("/containers/json?all={}&filters={}", running ? 0 : 1, FilterQuery(labels));
  TP_ASSIGN_OR_RETURN(const EngineResponse response, transport_.Send({"GET", path, ""}, deadline));
  if (response.status != 200) return Unavailable("the docker engine: {}", WordsOf(response));
  std::optional<std::vector<Container>> containers = ParseContainerList(response.body);
  if (!containers) return Broken("its containers");
  return *std::move(containers);
}

absl::StatusOr<std::optional<int>> Engine::Execute(const std::string& name, const std::vector<std::string>& argv,
                                                   absl::Time deadline) {
  // Attached, though it says nothing: podman tells how a detached program ended only minutes later.
  const Json body = {{"Cmd", argv}, {"AttachStdout", true}, {"AttachStderr", true}};
  const EngineRequest create{"POST", fmt::format("/containers/{}/exec", UrlEncode(name)), TextOf(body)};
  TP_ASSIGN_OR_RETURN(const EngineResponse created, transport_.Send(create, deadline));
  if (created.status == kNotFound || created.status == kConflict) return std::optional<int>();
  const std::string id = TextAt(Json::parse(created.body, nullptr, false), "Id");
  if (created.status >= 300 || id.empty()) return Unavailable("the docker engine: {}", WordsOf(created));
  const std::string path = fmt::format("/exec/{}", UrlEncode(id));
  TP_ASSIGN_OR_RETURN(const EngineResponse started,
                      transport_.Send({"POST", path + "/start", R"({"Detach":false})"}, deadline));
  if (started.status == kNotFound || started.status == kConflict) return std::optional<int>();
  if (started.status >= 300) return Unavailable("the docker engine: {}", WordsOf(started));
  while (absl::Now() < deadline) {
    TP_ASSIGN_OR_RETURN(const EngineResponse state, transport_.Send({"GET", path + "/json", ""}, deadline));
    if (state.status == kNotFound) return std::optional<int>();  // it went with its container
    const Json json = Json::parse(state.body, nullptr, false);
    if (!At(json, "Running").is_boolean()) return Broken("a program in a container");
    if (!At(json, "Running").get<bool>() && At(json, "ExitCode").is_number_integer()) {
      return std::optional<int>(At(json, "ExitCode").get<int>());
    }
    std::this_thread::sleep_for(absl::ToChronoMilliseconds(kExecutePoll));
  }
  return Unavailable("a program in container {} did not end in time", name);
}

absl::StatusOr<bool> Engine::HasImage(const std::string& image, absl::Time deadline) {
  TP_ASSIGN_OR_RETURN(const EngineResponse response,
                      transport_.Send({"GET", fmt::format("/images/{}/json", UrlEncode(image)), ""}, deadline));
  if (response.status == 200) return true;
  if (response.status == kNotFound) return false;
  return Unavailable("the docker engine: {}", WordsOf(response));
}

absl::Status Engine::Pull(const std::string& image, absl::Time deadline,
                          const std::function<bool(std::string)>& progress) {
  PullProgress so_far;
  bool enough = false;
  std::string error;
  std::string message;  // of an answer that is an error as a whole
  const auto line = [&](std::string_view text) {
    const Json json = Json::parse(text, nullptr, false);
    if (json.is_object()) error = TextAt(json, "error");
    if (json.is_object()) message = TextAt(json, "message");
    if (error.empty() && json.is_object()) enough = progress(so_far.Take(json));
    return error.empty() && !enough && absl::Now() < deadline;
  };
  // Without a tag the engine would fetch every one that there is.
  const bool tagged =
      image.find('@') != std::string::npos || image.find(':', image.rfind('/') + 1) != std::string::npos;
  const std::string path = fmt::format("/images/create?fromImage={}", UrlEncode(tagged ? image : image + ":latest"));
  const absl::Status status = transport_.Stream({"POST", path, ""}, kPullIdle, line);
  if (enough) return Error(absl::StatusCode::kCancelled, "the pull of {} was called off", image);
  if (!status.ok() && message.empty()) return status;
  if (!status.ok()) return Error(absl::IsUnknown(status) ? status.code() : absl::StatusCode::kAborted, "{}", message);
  if (!error.empty()) {
    return Error(IsForGood(error) ? absl::StatusCode::kUnknown : absl::StatusCode::kAborted, "{}", error);
  }
  if (absl::Now() >= deadline) return Error(absl::StatusCode::kUnknown, "it did not arrive in time");
  return absl::OkStatus();
}

absl::StatusOr<EngineAnswer> Engine::CreateNetwork(const std::string& name, const std::string& body,
                                                   absl::Time deadline) {
  TP_ASSIGN_OR_RETURN(const EngineResponse seen,
                      transport_.Send({"GET", "/networks/" + UrlEncode(name), ""}, deadline));
  if (seen.status == 200) return EngineAnswer{};
  return Call({"POST", "/networks/create", body}, deadline);
}

absl::StatusOr<std::vector<std::string>> Engine::ListNetworks(const std::string& label, absl::Time deadline) {
  TP_ASSIGN_OR_RETURN(const EngineResponse response,
                      transport_.Send({"GET", "/networks?filters=" + FilterQuery({label}), ""}, deadline));
  const Json list = Json::parse(response.body, nullptr, false);
  if (response.status != 200) return Unavailable("the docker engine: {}", WordsOf(response));
  if (!list.is_array()) return Broken("its networks");
  std::vector<std::string> ids;
  ids.reserve(list.size());
  for (const Json& network : list) ids.push_back(TextAt(network, "Id"));
  return ids;
}

absl::StatusOr<EngineAnswer> Engine::RemoveNetwork(const std::string& name, absl::Time deadline) {
  return Call({"DELETE", "/networks/" + UrlEncode(name), ""}, deadline);
}

absl::Status Engine::FollowEvents(const std::string& label,
                                  const std::function<void(const std::string& name)>& happened) {
  const Json filters = {{"type", {"container"}}, {"label", {label}}};
  return transport_.Stream({"GET", "/events?filters=" + UrlEncode(TextOf(filters)), ""}, kEventsIdle,
                           [&](std::string_view text) {
                             const Json json = Json::parse(text, nullptr, false);
                             if (json.is_object() && json.contains("Actor") && json["Actor"].is_object()) {
                               const Json attributes = json["Actor"].value("Attributes", Json::object());
                               happened(TextAt(attributes, "name"));
                             }
                             return true;
                           });
}

}  // namespace tp::docker
