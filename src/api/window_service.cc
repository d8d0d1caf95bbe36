#include "api/window_service.h"

#include <memory>
#include <string>

#include "api/convert.h"
#include "api/mutation.h"
#include "api/series_name.h"
#include "api/what_if.h"
#include "api/window_hours.h"

namespace tp::api {
namespace {

constexpr std::string_view kListWindows = "/tp.v1.WindowService/ListWindows";
constexpr std::string_view kHoldWindowOpen = "/tp.v1.WindowService/HoldWindowOpen";
constexpr int kDefaultDays = 14;
constexpr int kMostDays = 62;
constexpr absl::Duration kLongestHold = absl::Hours(24 * 366);

void Describe(Context& context, const core::Registry& registry, const v1::ListWindowsRequest& request,
              const core::HeldOpen& held_open, v1::ListWindowsResponse* response) {
  const absl::Duration ahead = absl::Hours(24 * (request.days() == 0 ? kDefaultDays : request.days()));
  for (const auto& [name, series] : registry.series) {
    if (series.windows.empty() || (!request.series().empty() && request.series() != name)) continue;
    *response->add_series() = DescribeWindows(registry, series, held_open, context.now(), ahead);
  }
}

void ListWindows(Context& context, const v1::ListWindowsRequest& request, v1::ListWindowsResponse* response,
                 const Done& done) {
  const std::shared_ptr<const core::Registry> registry = context.registry();
  if (auto status = CheckSeriesName(*registry, request.series()); !status.ok()) return done(status);
  if (request.days() < 0 || request.days() > kMostDays) {
    return done(FieldError("days", "days is a number from 1 to {}, or 0 for {}", kMostDays, kDefaultDays));
  }
  // What is held open is the loop's to know; the rest is computed on a thread of ours.
  context.loop.Post(loop::StandingQuery(),
                    [&context, registry, request, response, done](const absl::StatusOr<loop::Standings>& standings) {
                      if (!standings.ok()) return done(standings.status());
                      context.calls.Post([&context, registry, request, response, done, held = standings->held_open] {
                        Describe(context, *registry, request, held, response);
                        done(absl::OkStatus());
                      });
                    });
}

absl::StatusOr<loop::HoldWindowOpen> ParseHold(const Context& context, const v1::HoldWindowOpenRequest& request) {
  if (request.series().empty()) return FieldError("series", "say which series: tp windows lists those with windows");
  TP_RETURN_IF_ERROR(CheckSeriesName(*context.registry(), request.series()));
  loop::HoldWindowOpen hold;
  hold.series = request.series();
  if (request.has_until()) hold.until = FromProto(request.until());
  if (hold.until && *hold.until > context.now() + kLongestHold) {
    return FieldError("until", "at most 366 days: a window that is to stay open is better taken out of registry.yaml");
  }
  return hold;
}

}  // namespace

grpc::ServerUnaryReactor* WindowService::ListWindows(grpc::CallbackServerContext* server_context,
                                                     const v1::ListWindowsRequest* request,
                                                     v1::ListWindowsResponse* response) {
  return RunUnary(
      context_, context_.calls, server_context, kListWindows,
      [=, this](const Call& /*call*/, const Done& done) { tp::api::ListWindows(context_, *request, response, done); });
}

grpc::ServerUnaryReactor* WindowService::HoldWindowOpen(grpc::CallbackServerContext* server_context,
                                                        const v1::HoldWindowOpenRequest* request,
                                                        v1::HoldWindowOpenResponse* response) {
  return RunUnary(context_, context_.calls, server_context, kHoldWindowOpen,
                  [=, this](const Call& call, const Done& done) {
                    auto action = ParseHold(context_, *request);
                    if (!action.ok()) return done(action.status());
                    if (request->dry_run()) {
                      return AnswerForetold(context_, call, *std::move(action), response, done);
                    }
                    ChangeWithNote(context_, call, *request, response, done, *std::move(action));
                  });
}

}  // namespace tp::api
