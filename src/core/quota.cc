#include "core/quota.h"

#include <algorithm>

namespace tp::core {
namespace {

void Override(std::optional<int64_t>& limit, const std::optional<int64_t>& by) {
  if (by) limit = by;
}

void Override(QuotaLimits& limits, const QuotaLimits& by) {
  Override(limits.gpus, by.gpus);
  Override(limits.jobs, by.jobs);
  Override(limits.gpu_hours, by.gpu_hours);
  Override(limits.storage_bytes, by.storage_bytes);
  for (const auto& [series, gpus] : by.series_gpus) limits.series_gpus[series] = gpus;
}

}  // namespace

void QuotaBook::Add(QuotaRule rule) {
  Remove(rule.id);
  rules_[rule.user].push_back(std::move(rule));
}

void QuotaBook::Remove(int64_t id) {
  for (auto user = rules_.begin(); user != rules_.end();) {
    std::erase_if(user->second, [id](const QuotaRule& rule) { return rule.id == id; });
    user = user->second.empty() ? rules_.erase(user) : std::next(user);
  }
}

QuotaLimits QuotaBook::LimitsOf(const std::string& user, absl::Time at) const {
  QuotaLimits limits = defaults_;
  const auto found = rules_.find(user);
  if (found == rules_.end()) return limits;
  for (const bool dated : {false, true}) {
    for (const QuotaRule& rule : found->second) {
      if (rule.dated() == dated && rule.CountsAt(at)) Override(limits, rule.limits);
    }
  }
  return limits;
}

std::optional<absl::Time> QuotaBook::NextEdge(absl::Time at) const {
  std::optional<absl::Time> next;
  for (const auto& [user, rules] : rules_) {
    for (const QuotaRule& rule : rules) {
      for (const std::optional<absl::Time>& edge : {rule.from, rule.until}) {
        if (edge && *edge > at && (!next || *edge < *next)) next = edge;
      }
    }
  }
  return next;
}

}  // namespace tp::core
