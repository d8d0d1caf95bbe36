#include "api/system_service.h"

#include <string>

#include "api/convert.h"
#include "api/reconcile.h"
#include "api/reload.h"
#include "base/status.h"

namespace tp::api {
namespace {

constexpr std::string_view kGetServerInfo = "/tp.v1.SystemService/GetServerInfo";
constexpr std::string_view kReconcile = "/tp.v1.SystemService/Reconcile";
constexpr std::string_view kReloadConfiguration = "/tp.v1.SystemService/ReloadConfiguration";
constexpr std::string_view kListReceivers = "/tp.v1.SystemService/ListReceivers";
constexpr std::string_view kWhoAmI = "/tp.v1.SystemService/WhoAmI";

absl::Status ServerInfo(Context& context, v1::GetServerInfoResponse* response) {
  response->set_version(context.facts.version);
  response->set_deployment(context.facts.deployment);
  response->set_epoch(context.facts.epoch);
  response->set_revision(context.hub.revision());
  response->set_registry_version(context.registry()->version);
  return absl::OkStatus();
}

absl::Status Who(const Call& call, v1::WhoAmIResponse* response) {
  response->set_user(call.caller.user);
  response->set_role(std::string(auth::Name(call.caller.role)));
  return absl::OkStatus();
}

absl::Status Receivers(Context& context, v1::ListReceiversResponse* response) {
  TP_ASSIGN_OR_RETURN(const std::vector<notify::ReceiverStatus> receivers, context.receivers());
  for (const notify::ReceiverStatus& from : receivers) {
    v1::Receiver* to = response->add_receivers();
    to->set_name(from.name);
    to->set_configured(from.configured);
    to->set_delivered(from.delivered);
    to->set_given_up(from.given_up);
    to->set_waiting(from.waiting);
    to->set_last_error(from.last_error);
    if (from.last_failed_at) *to->mutable_last_failed_at() = ToProto(*from.last_failed_at);
  }
  return absl::OkStatus();
}

}  // namespace

grpc::ServerUnaryReactor* SystemService::GetServerInfo(grpc::CallbackServerContext* server_context,
                                                       const v1::GetServerInfoRequest* /*request*/,
                                                       v1::GetServerInfoResponse* response) {
  return RunUnarySync(context_, context_.calls, server_context, kGetServerInfo,
                      [=, this](const Call& /*call*/) { return ServerInfo(context_, response); });
}

grpc::ServerUnaryReactor* SystemService::WhoAmI(grpc::CallbackServerContext* server_context,
                                                const v1::WhoAmIRequest* /*request*/, v1::WhoAmIResponse* response) {
  return RunUnarySync(context_, context_.calls, server_context, kWhoAmI,
                      [=](const Call& call) { return Who(call, response); });
}

grpc::ServerUnaryReactor* SystemService::ListReceivers(grpc::CallbackServerContext* server_context,
                                                       const v1::ListReceiversRequest* /*request*/,
                                                       v1::ListReceiversResponse* response) {
  return RunUnarySync(context_, context_.files, server_context, kListReceivers,
                      [=, this](const Call& /*call*/) { return Receivers(context_, response); });
}

grpc::ServerUnaryReactor* SystemService::ReloadConfiguration(grpc::CallbackServerContext* server_context,
                                                             const v1::ReloadConfigurationRequest* request,
                                                             v1::ReloadConfigurationResponse* response) {
  return RunUnary(context_, context_.files, server_context, kReloadConfiguration,
                  [=, this](const Call& call, const Done& done) {
                    tp::api::ReloadConfiguration(context_, call, *request, response, done);
                  });
}

grpc::ServerUnaryReactor* SystemService::Reconcile(grpc::CallbackServerContext* server_context,
                                                   const v1::ReconcileRequest* request,
                                                   v1::ReconcileResponse* response) {
  return RunUnary(context_, context_.files, server_context, kReconcile, [=, this](const Call& call, const Done& done) {
    tp::api::Reconcile(context_, call, *request, response, done);
  });
}

}  // namespace tp::api
