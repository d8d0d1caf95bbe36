// tp admin quota set, show, list, unset: what users may hold.
#include <cctype>
#include <charconv>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "absl/time/clock.h"
#include "base/status.h"
#include "cli/answer.h"
#include "cli/collect.h"
#include "cli/commands/commands.h"
#include "cli/limits.h"
#include "cli/render/quota.h"
#include "cli/render/time.h"

namespace tp::cli {
namespace {

constexpr int32_t kRulePage = 500;
constexpr char kDryRunHelp[] = "Say what would start, be held or be over; change nothing";

struct SetFlags {
  std::string user;
  LimitFlags limits;
  std::string from;
  std::string until;
  bool dry_run = false;
};

absl::StatusOr<v1::GetStandingResponse> FetchQuota(Client& client, const std::string& user) {
  v1::GetStandingRequest request;
  request.set_user(user);
  return client.Call(&v1::QuotaService::Stub::GetStanding, request);
}

absl::StatusOr<ExitCode> SendQuota(Context& context, v1::SetQuotaRequest request) {
  request.set_request_id(NewRequestId());
  TP_ASSIGN_OR_RETURN(Client* const client, context.Connect());
  TP_ASSIGN_OR_RETURN(const v1::SetQuotaResponse response, client->Call(&v1::QuotaService::Stub::SetQuota, request));
  if (request.dry_run()) return ShowForecast(context, response.note(), response.forecast());
  return ShowNote(context, request.user(), response.note());
}

absl::StatusOr<ExitCode> SetQuota(Context& context, const SetFlags& flags) {
  if (flags.limits.empty()) {
    return InvalidArgument("say what is limited: --gpus, --series, --jobs, --gpu-hours or --storage");
  }
  v1::SetQuotaRequest request;
  const absl::Time now = absl::Now();
  if (!flags.from.empty()) {
    TP_ASSIGN_OR_RETURN(const absl::Time from, ParseFutureInstant(flags.from, "--from", now));
    *request.mutable_from() = ToProto(from);
  }
  if (!flags.until.empty()) {
    TP_ASSIGN_OR_RETURN(const absl::Time until, ParseFutureInstant(flags.until, "--until", now));
    *request.mutable_until() = ToProto(until);
  }
  TP_RETURN_IF_ERROR(ApplyLimits(flags.limits, request));
  request.set_user(flags.user);
  request.set_dry_run(flags.dry_run);
  return SendQuota(context, std::move(request));
}

absl::StatusOr<ExitCode> ShowQuota(Context& context, const std::string& user) {
  TP_ASSIGN_OR_RETURN(Client* const client, context.Connect());
  TP_ASSIGN_OR_RETURN(const v1::GetStandingResponse response, FetchQuota(*client, user));
  Answer answer;
  answer.table = [&](bool) { return StandingPage(response, context.terminal(), absl::Now()); };
  answer.fill = [&](Json& document) { document.update(ToJson(response)); };
  answer.names = std::vector<std::string>{response.standing().user()};
  return Show(context, answer);
}

absl::StatusOr<ExitCode> ListQuotas(Context& context) {
  TP_ASSIGN_OR_RETURN(Client* const client, context.Connect());
  std::vector<v1::Standing> standings;
  v1::QuotaLimits defaults;
  v1::ListQuotasRequest request;
  request.set_page_size(kRulePage);
  do {
    TP_ASSIGN_OR_RETURN(const v1::ListQuotasResponse page, client->Call(&v1::QuotaService::Stub::ListQuotas, request));
    standings.insert(standings.end(), page.standings().begin(), page.standings().end());
    defaults = page.defaults();
    request.set_after_user(page.next_after_user());
  } while (!request.after_user().empty());
  Answer answer;
  answer.table = [&](bool) { return QuotaTable(standings, defaults, context.terminal()); };
  answer.fill = [&](Json& document) {
    document["defaults"] = ToJson(defaults);
    document["standings"] = Json::array();
    for (const v1::Standing& standing : standings) document["standings"].push_back(ToJson(standing));
  };
  answer.names = Collect(standings, [](const v1::Standing& standing) { return standing.user(); });
  return Show(context, answer);
}

// User names begin with a letter or `_`.
bool IsRule(const std::string& word) {
  return !word.empty() && std::isdigit(static_cast<unsigned char>(word.front())) != 0;
}

absl::StatusOr<ExitCode> RemoveRule(Context& context, const std::string& word, bool dry_run) {
  int64_t rule = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), rule);
  if (error != std::errc() || end != word.data() + word.size()) {
    return InvalidArgument("{} is neither a rule nor a user: tp admin quota list shows them", word);
  }
  v1::RemoveQuotaRuleRequest request;
  request.set_request_id(NewRequestId());
  request.set_rule(rule);
  request.set_dry_run(dry_run);
  TP_ASSIGN_OR_RETURN(Client* const client, context.Connect());
  TP_ASSIGN_OR_RETURN(const v1::RemoveQuotaRuleResponse response,
                      client->Call(&v1::QuotaService::Stub::RemoveQuotaRule, request));
  if (dry_run) return ShowForecast(context, response.note(), response.forecast());
  return ShowNote(context, word, response.note());
}

absl::StatusOr<ExitCode> UnsetQuota(Context& context, const std::string& word, bool dry_run) {
  if (IsRule(word)) return RemoveRule(context, word, dry_run);
  v1::SetQuotaRequest request;
  request.set_user(word);
  request.add_clear("*");
  request.set_dry_run(dry_run);
  return SendQuota(context, std::move(request));
}

void AddSet(CLI::App& quota, Context& context) {
  CLI::App* command = quota.add_subcommand("set", "Limit what a user holds at once; what is over it waits");
  command->footer(
      "A limit is a number, none, or default for what the deployment says; limits that are not named stay. With "
      "--from\n"
      "or --until it is an override of its own that counts before the user's limits in that time.");
  auto flags = std::make_shared<SetFlags>();
  command->add_option("USER", flags->user, "Whose")->required();
  command->add_option("--gpus", flags->limits.gpus, "Cards held or reserved at once");
  command->add_option("--series", flags->limits.series, "Likewise of one series, as in h200=8; may be repeated")
      ->allow_extra_args(false);
  command->add_option("--jobs", flags->limits.jobs, "Jobs that are live at once");
  command->add_option("--gpu-hours", flags->limits.gpu_hours, "Card hours in a month");
  command->add_option("--storage", flags->limits.storage, "Bytes of output and snapshots (500GiB, 1TiB)");
  command->add_option("--from", flags->from, "From then on (12h, 2026-12-01, RFC 3339)");
  command->add_option("--until", flags->until, "Until then");
  command->add_flag("--dry-run", flags->dry_run, kDryRunHelp);
  command->callback([&context, flags] { context.action = [flags](Context& c) { return SetQuota(c, *flags); }; });
}

}  // namespace

void AddAdminQuotaCommands(CLI::App& admin, Context& context) {
  CLI::App* quota = admin.add_subcommand("quota", "What users may hold at once");
  quota->require_subcommand(1);
  AddSet(*quota, context);
  auto user = std::make_shared<std::string>();
  CLI::App* show = quota->add_subcommand("show", "What a user holds, may hold, and by which rules");
  show->add_option("USER", *user, "Whose")->required();
  show->callback([&context, user] { context.action = [user](Context& c) { return ShowQuota(c, *user); }; });
  quota->add_subcommand("list", "Everybody who holds, queues or is limited")->callback([&context] {
    context.action = ListQuotas;
  });
  auto word = std::make_shared<std::string>();
  CLI::App* unset = quota->add_subcommand("unset", "Remove a rule, or a user's own limits: the defaults count again");
  unset->add_option("RULE", *word, "A rule's number in `quota show`, or a user")->required();
  auto dry_run = std::make_shared<bool>(false);
  unset->add_flag("--dry-run", *dry_run, kDryRunHelp);
  unset->callback([&context, word, dry_run] {
    context.action = [word, dry_run](Context& c) { return UnsetQuota(c, *word, *dry_run); };
  });
}

}  // namespace tp::cli
