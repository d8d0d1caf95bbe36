#include "api/usage_service.h"

#include <map>
#include <string>

#include "absl/strings/numbers.h"
#include "api/convert.h"
#include "api/request.h"
#include "api/run_reader.h"

namespace tp::api {
namespace {

constexpr std::string_view kQueryUsage = "/tp.v1.UsageService/QueryUsage";
constexpr std::string_view kListIntervals = "/tp.v1.UsageService/ListIntervals";
constexpr std::string_view kEveryone = "*";

// Empty: the caller, or for one run whoever owns it; `*`: everyone.
std::optional<std::string> OwnerFilter(const std::string& owner, const std::string& run, const Call& call) {
  if (owner == kEveryone || (owner.empty() && !run.empty())) return std::nullopt;
  return owner.empty() ? call.caller.user : owner;
}

absl::StatusOr<std::optional<int64_t>> RunFilter(Context& context, const Call& call, const std::string& run) {
  if (run.empty()) return std::optional<int64_t>();
  TP_ASSIGN_OR_RETURN(const core::RunWithSteps found, FindRun(context, call, run));
  return std::optional<int64_t>(found.run.n);
}

// Ids of runs, each read once.
class RunIds {
 public:
  explicit RunIds(store::Reader& reader) : reader_(reader) {}

  absl::StatusOr<std::string> Of(int64_t n) {
    const auto known = ids_.find(n);
    if (known != ids_.end()) return known->second;
    const auto run = reader_.GetRun(n);
    // The ledger outlives the runs it speaks of.
    if (!run.ok() && !absl::IsNotFound(run.status())) return run.status();
    return ids_[n] = run.ok() ? run->run.id() : fmt::format("{}", n);
  }

 private:
  store::Reader& reader_;
  std::map<int64_t, std::string> ids_;
};

// Runs are called by their ids.
absl::StatusOr<std::string> KeyOf(const store::UsageRow& row, store::UsageKey by, RunIds& ids) {
  int64_t n = 0;
  if (by != store::UsageKey::kRun || !absl::SimpleAtoi(row.key, &n)) return row.key;
  return ids.Of(n);
}

// What both requests say of the rows they are about.
template <typename Request>
absl::StatusOr<store::UsageFilter> ParseFilter(Context& context, const Call& call, const Request& request) {
  store::UsageFilter filter;
  filter.owner = OwnerFilter(request.owner(), request.run(), call);
  if (!request.project().empty()) filter.project = request.project();
  if (request.has_from()) filter.from = FromProto(request.from());
  if (request.has_to()) filter.to = FromProto(request.to());
  if (filter.from && filter.to && *filter.from >= *filter.to) return FieldError("to", "the time ends before it begins");
  TP_ASSIGN_OR_RETURN(filter.run, RunFilter(context, call, request.run()));
  return filter;
}

absl::Status Query(Context& context, const Call& call, const v1::QueryUsageRequest& request,
                   v1::QueryUsageResponse* response) {
  const auto by = FromProto(request.by());
  if (!by) return FieldError("by", "say what usage is summed by: user, project, series, profile, day, month or run");
  TP_ASSIGN_OR_RETURN(const store::UsageFilter filter, ParseFilter(context, call, request));
  TP_ASSIGN_OR_RETURN(const auto rows, context.reader.Usage(filter, *by));
  RunIds ids(context.reader);
  for (const store::UsageRow& row : rows) {
    v1::UsageRow* to = response->add_rows();
    TP_ASSIGN_OR_RETURN(const std::string key, KeyOf(row, *by, ids));
    to->set_key(key);
    to->set_gpu_ms(row.gpu_ms);
    to->set_runs(row.runs);
  }
  return absl::OkStatus();
}

std::string ListIdentity(const v1::ListIntervalsRequest& request, const Call& call) {
  v1::ListIntervalsRequest filters = request;
  filters.clear_page_size();
  filters.clear_page_token();
  return fmt::format("{}\n{}\n{}", kListIntervals, call.caller.user, DeterministicBytes(filters));
}

absl::Status Intervals(Context& context, const Call& call, const v1::ListIntervalsRequest& request,
                       v1::ListIntervalsResponse* response) {
  const std::string identity = ListIdentity(request, call);
  TP_ASSIGN_OR_RETURN(const int limit, ParsePageSize(request.page_size()));
  int64_t after = 0;
  if (!request.page_token().empty()) {
    TP_ASSIGN_OR_RETURN(after, context.page_tokens.Read(identity, request.page_token()));
  }
  TP_ASSIGN_OR_RETURN(const store::UsageFilter filter, ParseFilter(context, call, request));
  TP_ASSIGN_OR_RETURN(const auto rows, context.reader.Ledger(filter, after, limit));
  RunIds ids(context.reader);
  for (const core::LedgerRow& row : rows) {
    TP_ASSIGN_OR_RETURN(const std::string id, ids.Of(row.run));
    *response->add_intervals() = ToProto(row, id);
  }
  if (static_cast<int>(rows.size()) == limit) {
    response->set_next_page_token(context.page_tokens.Make(identity, rows.back().seq));
  }
  return absl::OkStatus();
}

}  // namespace

grpc::ServerUnaryReactor* UsageService::QueryUsage(grpc::CallbackServerContext* server_context,
                                                   const v1::QueryUsageRequest* request,
                                                   v1::QueryUsageResponse* response) {
  return RunUnarySync(context_, context_.calls, server_context, kQueryUsage,
                      [=, this](const Call& call) { return Query(context_, call, *request, response); });
}

grpc::ServerUnaryReactor* UsageService::ListIntervals(grpc::CallbackServerContext* server_context,
                                                      const v1::ListIntervalsRequest* request,
                                                      v1::ListIntervalsResponse* response) {
  return RunUnarySync(context_, context_.calls, server_context, kListIntervals,
                      [=, this](const Call& call) { return Intervals(context_, call, *request, response); });
}

}  // namespace tp::api
