// What admins set for users and windows, and where users stand.
#include <algorithm>
#include <functional>
#include <set>

#include <fmt/format.h>

#include "base/human_bytes.h"
#include "base/status.h"
#include "loop/loop.h"
#include "loop/principal.h"

namespace tp::loop {
namespace {

std::string TimeText(absl::Time at) {
  return std::string(absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", at, absl::UTCTimeZone()));
}

constexpr std::string_view kDefaults = "the deployment's defaults";

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
  if ((set.from || set.until) && !set.clear.empty()) {
    return InvalidArgument("an override is a rule of its own: there is nothing to clear in it");
  }
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

absl::StatusOr<Loop::Edit> Loop::EditOf(const Principal& who, const SetQuota& set) const {
  TP_RETURN_IF_ERROR(CheckAdmin(who, "set quota"));
  TP_RETURN_IF_ERROR(CheckLimits(set, *registry_, now_));
  core::QuotaRule rule{.id = next_quota_rule_,
                       .user = set.user,
                       .from = set.from,
                       .until = set.until,
                       .limits = set.limits,
                       .set_at = now_,
                       .set_by = who.user};
  Edit edit;
  if (!rule.dated()) {
    const core::QuotaRule* const own = planner_.quotas().OwnRule(set.user);
    edit.before = own ? LimitsText(own->limits) : std::string(kDefaults);
    if (own) edit.change.dropped_rules.push_back(own->id);
    rule.limits = core::Patched(own ? own->limits : core::QuotaLimits(), set.clear, set.limits);
  }
  if (rule.limits.empty()) {
    edit.note = fmt::format("quota of {}: {}", set.user, kDefaults);
  } else {
    edit.note = RuleText(rule);
    edit.change.put_rules.push_back(std::move(rule));
  }
  return edit;
}

absl::StatusOr<Loop::Edit> Loop::EditOf(const Principal& who, const RemoveQuotaRule& remove) const {
  TP_RETURN_IF_ERROR(CheckAdmin(who, "set quota"));
  for (const auto& [user, rules] : planner_.quotas().rules()) {
    for (const core::QuotaRule& rule : rules) {
      if (rule.id != remove.id) continue;
      Edit edit;
      edit.note = fmt::format("removed: {}", RuleText(rule));
      edit.change.dropped_rules.push_back(rule.id);
      return edit;
    }
  }
  return NotFound("there is no quota rule {}: see tp admin quota list", remove.id);
}

absl::StatusOr<Loop::Edit> Loop::EditOf(const Principal& who, const HoldWindowOpen& hold) const {
  TP_RETURN_IF_ERROR(CheckAdmin(who, "set windows"));
  const auto series = registry_->series.find(hold.series);
  if (series == registry_->series.end()) return NotFound("there is no series {}: see tp series", hold.series);
  if (series->second.windows.empty())
    return FailedPrecondition("series {} has no windows: it is always open", hold.series);
  if (hold.until && *hold.until <= now_) return InvalidArgument("say a time to come until which it is held open");
  const absl::Time until = hold.until.value_or(now_);
  Edit edit;
  edit.note = hold.until ? fmt::format("{} is held open until {}", hold.series, TimeText(until))
                         : fmt::format("{} follows its hours again", hold.series);
  edit.change.held_open[hold.series] = until;
  return edit;
}

absl::StatusOr<Answer> Loop::ChangeRules(const Command& command, absl::StatusOr<Edit> edit) {
  TP_RETURN_IF_ERROR(edit.status());
  Make(edit->change, command.who.user);
  Answer answer;
  answer.note = std::move(edit->note);
  Remember(command, answer);
  Audit(command, 0, edit->before.empty() ? answer.note : fmt::format("{}; before: {}", answer.note, edit->before));
  return answer;
}

void Loop::Make(const plan::Change& change, const std::string& set_by) {
  for (const int64_t id : change.dropped_rules) DropRule(id);
  for (const core::QuotaRule& rule : change.put_rules) {
    next_quota_rule_ = std::max(next_quota_rule_, rule.id + 1);
    PutRule(rule);
  }
  for (const auto& [series, until] : change.held_open) {
    planner_.HoldOpen(series, until);
    batch_.txn.window_holds.push_back({.series = series, .until = until, .set_by = set_by});
    batch_.changed = true;
  }
  if (!change.held_open.empty()) WatchAllWindows();
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
