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

void Clear(QuotaLimits& limits, const QuotaKeys& keys) {
  if (keys.all) limits = {};
  if (keys.gpus) limits.gpus.reset();
  if (keys.jobs) limits.jobs.reset();
  if (keys.gpu_hours) limits.gpu_hours.reset();
  if (keys.storage_bytes) limits.storage_bytes.reset();
  for (const std::string& series : keys.series) limits.series_gpus.erase(series);
}

}  // namespace

QuotaLimits Patched(QuotaLimits limits, const QuotaKeys& clear, const QuotaLimits& set) {
  Clear(limits, clear);
  Override(limits, set);
  return limits;
}

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

const QuotaRule* QuotaBook::OwnRule(const std::string& user) const {
  const auto found = rules_.find(user);
  if (found == rules_.end()) return nullptr;
  const auto own =
      std::find_if(found->second.begin(), found->second.end(), [](const QuotaRule& rule) { return !rule.dated(); });
  return own == found->second.end() ? nullptr : &*own;
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
