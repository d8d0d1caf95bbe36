// What a user may hold at once (DESIGN 6, quota): limits from the deployment's defaults, the user's own and
// dated overrides, and what the user holds now. Over quota waits, nothing is refused or stopped. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"

namespace tp::core {

// A limit is absent (the next layer counts), a number, or this: no limit, whatever the next layer says.
inline constexpr int64_t kNoLimit = -1;

struct QuotaLimits {
  std::optional<int64_t> gpus;                 // cards held or reserved at once
  std::map<std::string, int64_t> series_gpus;  // likewise, by series
  std::optional<int64_t> jobs;                 // job slots: live attempts
  std::optional<int64_t> gpu_hours;            // a month of accounting.timezone
  std::optional<int64_t> storage_bytes;
  bool operator==(const QuotaLimits&) const = default;

  bool empty() const { return *this == QuotaLimits{}; }
};

// Limits by name.
struct QuotaKeys {
  bool all = false;
  bool gpus = false;
  std::set<std::string> series;
  bool jobs = false;
  bool gpu_hours = false;
  bool storage_bytes = false;
  bool operator==(const QuotaKeys&) const = default;

  bool empty() const { return *this == QuotaKeys{}; }
};

// An edit of a layer: what it clears is absent afterwards, what it sets is set, the rest stays.
QuotaLimits Patched(QuotaLimits limits, const QuotaKeys& clear, const QuotaLimits& set);

// One layer of a user's limits. Without dates it is the user's own; with them an override that counts
// within [from, until) before it. Of overrides that overlap, the one set last counts, key by key.
struct QuotaRule {
  int64_t id = 0;
  std::string user;
  std::optional<absl::Time> from;
  std::optional<absl::Time> until;
  QuotaLimits limits;
  absl::Time set_at;
  std::string set_by;
  bool operator==(const QuotaRule&) const = default;

  bool dated() const { return from.has_value() || until.has_value(); }
  bool CountsAt(absl::Time at) const { return (!from || *from <= at) && (!until || at < *until); }
};

// Measured in the background, so that it lags behind (DESIGN 6).
struct StorageUse {
  int64_t bytes = 0;
  absl::Time scanned_at;
  bool operator==(const StorageUse&) const = default;
};

// What a user holds.
struct QuotaUse {
  int64_t gpus = 0;
  std::map<std::string, int64_t> series_gpus;
  int64_t jobs = 0;
  int64_t month_gpu_ms = 0;           // of the present month, what runs included
  std::optional<StorageUse> storage;  // absent: never scanned
  bool operator==(const QuotaUse&) const = default;
};

// The limits of everybody, by what the deployment says and what admins set. Not thread-safe.
class QuotaBook {
 public:
  explicit QuotaBook(QuotaLimits defaults = {}) : defaults_(std::move(defaults)) {}

  void SetDefaults(QuotaLimits defaults) { defaults_ = std::move(defaults); }
  void Add(QuotaRule rule);  // a rule of the same id is replaced
  void Remove(int64_t id);

  // What counts for the user at that moment.
  QuotaLimits LimitsOf(const std::string& user, absl::Time at) const;

  // The user's own rule, the one without dates; null: none.
  const QuotaRule* OwnRule(const std::string& user) const;

  // When a dated rule next begins or ends, later than `at`.
  std::optional<absl::Time> NextEdge(absl::Time at) const;

  const QuotaLimits& defaults() const { return defaults_; }
  const std::map<std::string, std::vector<QuotaRule>>& rules() const { return rules_; }

 private:
  QuotaLimits defaults_;
  std::map<std::string, std::vector<QuotaRule>> rules_;  // by user, in the order they were set
};

}  // namespace tp::core
