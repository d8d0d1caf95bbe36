#include "api/reload.h"

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/ranges.h>
#include <google/protobuf/util/json_util.h>

#include "api/mutation.h"
#include "api/request.h"
#include "api/what_if.h"
#include "base/status.h"

namespace tp::api {
namespace {

v1::ConfigurationChangeKind KindOf(config::ChangeKind kind) {
  switch (kind) {
    case config::ChangeKind::kAdded:
      return v1::CONFIGURATION_CHANGE_KIND_ADDED;
    case config::ChangeKind::kRemoved:
      return v1::CONFIGURATION_CHANGE_KIND_REMOVED;
    case config::ChangeKind::kChanged:
      return v1::CONFIGURATION_CHANGE_KIND_CHANGED;
  }
  return v1::CONFIGURATION_CHANGE_KIND_UNSPECIFIED;
}

v1::ReloadConfigurationResponse AnswerOf(const ReloadPlan& plan) {
  v1::ReloadConfigurationResponse response;
  for (const config::Change& change : plan.changes) {
    v1::ConfigurationChange* to = response.add_changes();
    to->set_kind(KindOf(change.kind));
    to->set_what(change.what);
    to->set_name(change.name);
  }
  for (const std::string& key : plan.restart_keys) response.add_restart_keys(key);
  return response;
}

std::string AuditDetail(const ReloadPlan& plan) {
  std::vector<std::string> changes;
  changes.reserve(plan.changes.size());
  for (const config::Change& change : plan.changes) changes.push_back(change.text());
  return fmt::format("registry version {}: {}", plan.candidate->version,
                     changes.empty() ? "no change" : fmt::format("{}", fmt::join(changes, ", ")));
}

// An answer as it is remembered for the same request id.
std::string Remembered(const v1::ReloadConfigurationResponse& response) {
  std::string json;
  google::protobuf::util::MessageToJsonString(response, &json);
  return json;
}

absl::Status Repeated(const store::RequestRow& row, v1::ReloadConfigurationResponse* response) {
  if (google::protobuf::util::JsonStringToMessage(row.note, response).ok()) return absl::OkStatus();
  return Internal("the remembered answer to request_id {} cannot be read: use a new one", row.request_id);
}

// What the files would do to the queue; nothing where they change nothing.
using ForecastThen = std::function<void(absl::StatusOr<v1::QueueForecast>)>;
void ForetellReload(Context& context, const Call& call, const ReloadPlan& plan, const ForecastThen& then) {
  if (plan.changes.empty()) return then(v1::QueueForecast());
  Foretell(context, call, plan.candidate, [then](absl::StatusOr<Foretold> foretold) {
    if (!foretold.ok()) return then(foretold.status());
    then(std::move(foretold->forecast));
  });
}

void Compare(Context& context, const Call& call, v1::ReloadConfigurationResponse* response, const Done& done) {
  const absl::StatusOr<ReloadPlan> plan = context.configuration.Plan();
  if (!plan.ok()) return done(plan.status());
  *response = AnswerOf(*plan);
  response->set_registry_version(plan->current->version);
  ForetellReload(context, call, *plan, [response, done](absl::StatusOr<v1::QueueForecast> forecast) {
    const absl::Status status = forecast.status();
    if (status.ok()) *response->mutable_forecast() = *std::move(forecast);
    done(status);
  });
}

// Effects in the answer of a reload, which is kept for the same request; a dry run has more.
constexpr int kMostRemembered = 100;

// `forecast` was made for the files as they were a moment ago: of others it says nothing.
struct Foreseen {
  std::vector<config::Change> changes;
  v1::QueueForecast forecast;
};

void TakeIntoForce(Context& context, const Call& call, const std::string& request_id, const std::string& body,
                   const Foreseen& foreseen, v1::ReloadConfigurationResponse* response, const Done& done) {
  const absl::Status status = context.configuration.Reload([&](const ReloadPlan& plan) {
    *response = AnswerOf(plan);
    response->set_registry_version(plan.candidate->version);
    if (plan.changes == foreseen.changes) *response->mutable_forecast() = foreseen.forecast;
    auto& effects = *response->mutable_forecast()->mutable_effects();
    if (effects.size() > kMostRemembered) effects.DeleteSubrange(kMostRemembered, effects.size() - kMostRemembered);
    loop::ReloadRegistry action{
        .registry = plan.candidate, .answer = Remembered(*response), .detail = AuditDetail(plan)};
    context.loop.Post(MakeCommand(call, request_id, body, std::move(action)),
                      [done](const absl::StatusOr<loop::Answer>& answer) { done(answer.status()); });
  });
  if (!status.ok()) done(status);
}

}  // namespace

void ReloadConfiguration(Context& context, const Call& call, const v1::ReloadConfigurationRequest& request,
                         v1::ReloadConfigurationResponse* response, const Done& done) {
  if (request.dry_run()) return Compare(context, call, response, done);
  if (auto status = CheckRequestId(request.request_id()); !status.ok()) return done(status);
  const std::string body = BodySha256(call.method, request);
  const auto answered = FindAnswered(context, call, request.request_id(), body);
  if (!answered.ok()) return done(answered.status());
  if (*answered) return done(Repeated(**answered, response));
  const absl::StatusOr<ReloadPlan> plan = context.configuration.Plan();
  const ReloadPlan expected = plan.ok() ? *plan : ReloadPlan();  // faulty files: the reload says so
  ForetellReload(
      context, call, expected,
      [=, &context, request_id = request.request_id()](absl::StatusOr<v1::QueueForecast> forecast) {
        const Foreseen foreseen{.changes = expected.changes,
                                .forecast = forecast.ok() ? *std::move(forecast) : v1::QueueForecast()};
        context.files.Post([=, &context] { TakeIntoForce(context, call, request_id, body, foreseen, response, done); });
      });
}

}  // namespace tp::api
