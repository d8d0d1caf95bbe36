// What admins set for users and windows, and where users stand.
#include <functional>
#include <set>

#include <fmt/format.h>

#include "base/human_bytes.h"
#include "base/status.h"
#include "loop/loop.h"

namespace tp::loop {
namespace {

absl::Status CheckAdmin(const Principal& who, std::string_view what) {
  if (who.at_least(store::Role::kAdmin)) return absl::OkStatus();
  return Error(absl::StatusCode::kPermissionDenied, "{} may not set {}: only admins can", who.user, what);
}

std::string TimeText(absl::Time at) {
  return std::string(absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", at, absl::UTCTimeZone()));
}

std::string Plain(int64_t amount) { return fmt::format("{}", amount); }

std::string LimitsText(const core::QuotaLimits& limits) {
  std::string text;
  const auto add = [&text](std::string_view name, const std::optional<int64_t>& limit,
                           const std::function<std::string(int64_t)>& amount = Plain) {
    if (!limit) return;
    text +=
        fmt::format("{}{}: {}", text.empty() ? "" : ", ", name, *limit == core::kNoLimit ? "no limit" : amount(*limit));
  };
  add("gpus", limits.gpus);
  for (const auto& [series, gpus] : limits.series_gpus) add("gpus of " + series, gpus);
  add("jobs", limits.jobs);
  add("gpu_hours", limits.gpu_hours);
  add("storage", limits.storage_bytes, HumanBytes);
  return text;
}

std::string RuleText(const core::QuotaRule& rule) {
  std::string text = fmt::format("quota of {}: {}", rule.user, LimitsText(rule.limits));
  if (rule.from) text += ", from " + TimeText(*rule.from);
  if (rule.until) text += ", until " + TimeText(*rule.until);
  return text;
}

absl::Status CheckLimits(const SetQuota& set, const core::Registry& registry, absl::Time now) {
  const auto valid = [](const std::optional<int64_t>& limit) { return !limit || *limit >= core::kNoLimit; };
  const core::QuotaLimits& limits = set.limits;
  bool all_valid = valid(limits.gpus) && valid(limits.jobs) && valid(limits.gpu_hours) && valid(limits.storage_bytes);
  for (const auto& [series, gpus] : limits.series_gpus) {
    all_valid = all_valid && gpus >= core::kNoLimit;
    if (!registry.series.contains(series)) return InvalidArgument("there is no series {}: see tp series", series);
  }
  if (!all_valid) return InvalidArgument("a limit is a number from 0 on, or none");
  if (set.user.empty()) return InvalidArgument("say whose quota it is");
  if (set.from && set.until && *set.from >= *set.until) return InvalidArgument("the override ends before it begins");
  if (set.until && *set.until <= now) return InvalidArgument("the override would be over already");
  if ((set.from || set.until) && limits.empty()) return InvalidArgument("an override sets at least one limit");
  return absl::OkStatus();
}

}  // namespace

void Loop::PutRule(core::QuotaRule rule) {
  batch_.txn.quota_rules.push_back(rule);
  planner_.PutRule(std::move(rule));
  batch_.changed = true;
}

void Loop::DropRule(int64_t id) {
  batch_.txn.quota_rules_removed.push_back(id);
  planner_.DropRule(id);
  batch_.changed = true;
}

absl::StatusOr<Answer> Loop::ChangeQuota(const Command& command, const SetQuota& set) {
  TP_RETURN_IF_ERROR(CheckAdmin(command.who, "quota"));
  TP_RETURN_IF_ERROR(CheckLimits(set, *registry_, now_));
  core::QuotaRule rule{.id = next_quota_rule_,
                       .user = set.user,
                       .from = set.from,
                       .until = set.until,
                       .limits = set.limits,
                       .set_at = now_,
                       .set_by = command.who.user};
  std::vector<int64_t> replaced;
  if (const auto rules = planner_.quotas().rules().find(set.user);
      rules != planner_.quotas().rules().end() && !rule.dated()) {
    for (const core::QuotaRule& old : rules->second) {
      if (!old.dated()) replaced.push_back(old.id);
    }
  }
  for (const int64_t id : replaced) DropRule(id);
  Answer answer;
  if (rule.limits.empty()) {
    answer.note = fmt::format("quota of {}: the deployment's defaults", set.user);
  } else {
    answer.note = RuleText(rule);
    next_quota_rule_ += 1;
    PutRule(std::move(rule));
  }
  Remember(command, answer);
  Audit(command, 0, answer.note);
  return answer;
}

absl::StatusOr<Answer> Loop::ChangeQuota(const Command& command, const RemoveQuotaRule& remove) {
  TP_RETURN_IF_ERROR(CheckAdmin(command.who, "quota"));
  for (const auto& [user, rules] : planner_.quotas().rules()) {
    for (const core::QuotaRule& rule : rules) {
      if (rule.id != remove.id) continue;
      Answer answer;
      answer.note = fmt::format("removed: {}", RuleText(rule));
      DropRule(remove.id);
      Remember(command, answer);
      Audit(command, 0, answer.note);
      return answer;
    }
  }
  return NotFound("there is no quota rule {}: see tp admin quota list", remove.id);
}

absl::StatusOr<Answer> Loop::ChangeWindow(const Command& command, const HoldWindowOpen& hold) {
  TP_RETURN_IF_ERROR(CheckAdmin(command.who, "windows"));
  const auto series = registry_->series.find(hold.series);
  if (series == registry_->series.end()) return NotFound("there is no series {}: see tp series", hold.series);
  if (series->second.windows.empty())
    return FailedPrecondition("series {} has no windows: it is always open", hold.series);
  if (hold.until && *hold.until <= now_) return InvalidArgument("say a time to come until which it is held open");
  const absl::Time until = hold.until.value_or(now_);
  planner_.HoldOpen(hold.series, until);
  WatchAllWindows();
  batch_.txn.window_holds.push_back({.series = hold.series, .until = until, .set_by = command.who.user});
  batch_.changed = true;
  Answer answer;
  answer.note = hold.until ? fmt::format("{} is held open until {}", hold.series, TimeText(until))
                           : fmt::format("{} follows its hours again", hold.series);
  Remember(command, answer);
  Audit(command, 0, answer.note);
  return answer;
}

UserStanding Loop::StandingOf(const std::string& user) const {
  UserStanding standing;
  standing.user = user;
  standing.limits = planner_.quotas().LimitsOf(user, now_);
  standing.use = planner_.usage().UseOf(user, now_);
  if (const auto rules = planner_.quotas().rules().find(user); rules != planner_.quotas().rules().end())
    standing.rules = rules->second;
  return standing;
}

void Loop::TakeStanding(StandingMessage& message) {
  std::set<std::string> users(message.query.users.begin(), message.query.users.end());
  if (message.query.everybody) {
    users.merge(planner_.usage().Owners());
    for (const auto& [user, rules] : planner_.quotas().rules()) users.insert(user);
  }
  Standings standings;
  for (const std::string& user : users) standings.users.push_back(StandingOf(user));
  standings.defaults = planner_.quotas().defaults();
  standings.held_open = planner_.held_open();
  standings.shares = planner_.shares();
  batch_.leaving.push_back(
      [reply = std::move(message.reply), standings = std::move(standings)]() mutable { reply(std::move(standings)); });
}

void Loop::TakeScanned(StorageScanned& scanned) {
  for (store::StorageUseRow& row : scanned.use) {
    planner_.SetStorage(row.owner, row.use);
    batch_.txn.storage_use.push_back(std::move(row));
    batch_.changed = true;
  }
}

}  // namespace tp::loop
