#include "api/quota_service.h"

#include <algorithm>
#include <string>

#include "api/mutation.h"
#include "api/quota_convert.h"
#include "api/request.h"
#include "api/what_if.h"
#include "auth/identity.h"

namespace tp::api {
namespace {

constexpr std::string_view kGetStanding = "/tp.v1.QuotaService/GetStanding";
constexpr std::string_view kListQuotas = "/tp.v1.QuotaService/ListQuotas";
constexpr std::string_view kSetQuota = "/tp.v1.QuotaService/SetQuota";
constexpr std::string_view kRemoveQuotaRule = "/tp.v1.QuotaService/RemoveQuotaRule";

absl::StatusOr<std::string> StandingUser(const Call& call, const v1::GetStandingRequest& request) {
  if (request.user().empty()) return call.caller.user;
  if (auto status = auth::CheckUserName(request.user()); !status.ok()) return WithField(status, "user");
  if (auth::MayReadStanding(call.caller, request.user())) return request.user();
  return Error(absl::StatusCode::kPermissionDenied, "where {} stands is for operators and admins, and for {}",
               request.user(), request.user());
}

void GetStanding(Context& context, const Call& call, const v1::GetStandingRequest& request,
                 v1::GetStandingResponse* response, const Done& done) {
  const auto user = StandingUser(call, request);
  if (!user.ok()) return done(user.status());
  response->mutable_standing()->set_user(*user);
  context.loop.Post(loop::StandingQuery{.users = {*user}},
                    [response, done](const absl::StatusOr<loop::Standings>& standings) {
                      if (!standings.ok()) return done(standings.status());
                      for (const loop::UserStanding& standing : standings->users)
                        *response->mutable_standing() = ToProto(standing);
                      *response->mutable_defaults() = ToProto(standings->defaults);
                      done(absl::OkStatus());
                    });
}

void FillPage(const loop::Standings& standings, const v1::ListQuotasRequest& request, int limit,
              v1::ListQuotasResponse* response) {
  const auto first = std::find_if(standings.users.begin(), standings.users.end(),
                                  [&](const loop::UserStanding& one) { return one.user > request.after_user(); });
  for (auto one = first; one != standings.users.end() && response->standings_size() < limit; ++one) {
    *response->add_standings() = ToProto(*one);
  }
  if (standings.users.end() - first > limit) response->set_next_after_user(response->standings().rbegin()->user());
  *response->mutable_defaults() = ToProto(standings.defaults);
}

void ListQuotas(Context& context, const v1::ListQuotasRequest& request, v1::ListQuotasResponse* response,
                const Done& done) {
  const auto limit = ParsePageSize(request.page_size());
  if (!limit.ok()) return done(limit.status());
  loop::StandingQuery query;
  query.everybody = true;
  context.loop.Post(std::move(query),
                    [&context, request, response, done, limit = *limit](absl::StatusOr<loop::Standings> standings) {
                      if (!standings.ok()) return done(standings.status());
                      context.calls.Post([request, response, done, limit, standings = *std::move(standings)] {
                        FillPage(standings, request, limit, response);
                        done(absl::OkStatus());
                      });
                    });
}

}  // namespace

grpc::ServerUnaryReactor* QuotaService::GetStanding(grpc::CallbackServerContext* server_context,
                                                    const v1::GetStandingRequest* request,
                                                    v1::GetStandingResponse* response) {
  return RunUnary(context_, context_.calls, server_context, kGetStanding,
                  [=, this](const Call& call, const Done& done) {
                    tp::api::GetStanding(context_, call, *request, response, done);
                  });
}

grpc::ServerUnaryReactor* QuotaService::ListQuotas(grpc::CallbackServerContext* server_context,
                                                   const v1::ListQuotasRequest* request,
                                                   v1::ListQuotasResponse* response) {
  return RunUnary(
      context_, context_.calls, server_context, kListQuotas,
      [=, this](const Call& /*call*/, const Done& done) { tp::api::ListQuotas(context_, *request, response, done); });
}

grpc::ServerUnaryReactor* QuotaService::SetQuota(grpc::CallbackServerContext* server_context,
                                                 const v1::SetQuotaRequest* request, v1::SetQuotaResponse* response) {
  return RunUnary(context_, context_.calls, server_context, kSetQuota, [=, this](const Call& call, const Done& done) {
    auto action = ParseSetQuota(*request);
    if (!action.ok()) return done(action.status());
    if (request->dry_run()) return AnswerForetold(context_, call, *std::move(action), response, done);
    ChangeWithNote(context_, call, *request, response, done, *std::move(action));
  });
}

grpc::ServerUnaryReactor* QuotaService::RemoveQuotaRule(grpc::CallbackServerContext* server_context,
                                                        const v1::RemoveQuotaRuleRequest* request,
                                                        v1::RemoveQuotaRuleResponse* response) {
  return RunUnary(context_, context_.calls, server_context, kRemoveQuotaRule,
                  [=, this](const Call& call, const Done& done) {
                    const loop::RemoveQuotaRule remove{.id = request->rule()};
                    if (request->dry_run()) return AnswerForetold(context_, call, remove, response, done);
                    ChangeWithNote(context_, call, *request, response, done, remove);
                  });
}

}  // namespace tp::api
