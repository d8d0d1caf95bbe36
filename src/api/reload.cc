#include "api/reload.h"

#include <string>
#include <utility>
#include <vector>

#include <fmt/ranges.h>
#include <google/protobuf/util/json_util.h>

#include "api/mutation.h"
#include "api/queue_forecast.h"
#include "api/request.h"
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

absl::Status Compare(Context& context, v1::ReloadConfigurationResponse* response) {
  TP_ASSIGN_OR_RETURN(const ReloadPlan plan, context.configuration.Plan());
  *response = AnswerOf(plan);
  response->set_registry_version(plan.current->version);
  return ForecastQueue(context.reader, plan, response);
}

v1::ReloadConfigurationResponse AnswerTo(Context& context, const ReloadPlan& plan) {
  v1::ReloadConfigurationResponse response = AnswerOf(plan);
  response.set_registry_version(plan.candidate->version);
  // The registry is in force, whatever can be said of the queue.
  if (!ForecastQueue(context.reader, plan, &response).ok()) response.clear_queue_effects();
  return response;
}

}  // namespace

void ReloadConfiguration(Context& context, const Call& call, const v1::ReloadConfigurationRequest& request,
                         v1::ReloadConfigurationResponse* response, const Done& done) {
  if (request.dry_run()) return done(Compare(context, response));
  if (auto status = CheckRequestId(request.request_id()); !status.ok()) return done(status);
  std::string body = BodySha256(call.method, request);
  const auto answered = FindAnswered(context, call, request.request_id(), body);
  if (!answered.ok()) return done(answered.status());
  if (*answered) return done(Repeated(**answered, response));
  const absl::Status status = context.configuration.Reload([&](const ReloadPlan& plan) {
    *response = AnswerTo(context, plan);
    loop::ReloadRegistry action{
        .registry = plan.candidate, .answer = Remembered(*response), .detail = AuditDetail(plan)};
    context.loop.Post(MakeCommand(call, request.request_id(), std::move(body), std::move(action)),
                      [done](const absl::StatusOr<loop::Answer>& answer) { done(answer.status()); });
  });
  if (!status.ok()) done(status);
}

}  // namespace tp::api
