#include "store/usage.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "absl/time/civil_time.h"

namespace tp::store {
namespace {

constexpr int64_t kDayMs = int64_t{24} * 3600 * 1000;

int64_t Low(const core::LedgerRow& row) { return std::min(row.start_unix_ms, row.end_unix_ms); }
int64_t High(const core::LedgerRow& row) { return std::max(row.start_unix_ms, row.end_unix_ms); }

int64_t FloorDay(int64_t unix_ms) { return (unix_ms >= 0 ? unix_ms : unix_ms - kDayMs + 1) / kDayMs; }

std::string DayName(int64_t day) {
  const absl::CivilDay civil = absl::CivilDay(1970, 1, 1) + day;
  return fmt::format("{:04}-{:02}-{:02}", civil.year(), civil.month(), civil.day());
}

const std::string& TextKey(const core::LedgerRow& row, UsageKey by) {
  switch (by) {
    case UsageKey::kUser:
      return row.owner;
    case UsageKey::kProject:
      return row.project;
    case UsageKey::kSeries:
      return row.series;
    case UsageKey::kProfile:
      return row.profile;
    case UsageKey::kMonth:
    case UsageKey::kDay:
    case UsageKey::kRun:
      return row.month;
  }
  return row.month;
}

}  // namespace

MsRange RangeOf(const UsageFilter& filter) {
  return {filter.from ? absl::ToUnixMillis(*filter.from) : std::numeric_limits<int64_t>::min(),
          filter.to ? absl::ToUnixMillis(*filter.to) : std::numeric_limits<int64_t>::max()};
}

bool Touches(const core::LedgerRow& row, const MsRange& range) {
  if (Low(row) >= range.to_unix_ms) return false;
  return High(row) > range.from_unix_ms || (Low(row) == High(row) && Low(row) >= range.from_unix_ms);
}

bool Matches(const core::LedgerRow& row, const UsageFilter& filter) {
  return (!filter.owner || row.owner == *filter.owner) && (!filter.project || row.project == *filter.project) &&
         (!filter.run || row.run == *filter.run) && Touches(row, RangeOf(filter));
}

int64_t GpuMsWithin(const core::LedgerRow& row, const MsRange& range) {
  const int64_t low = std::max(Low(row), range.from_unix_ms);
  const int64_t high = std::min(High(row), range.to_unix_ms);
  if (high <= low) return 0;
  const int64_t sign = row.end_unix_ms < row.start_unix_ms ? -1 : 1;
  return sign * (high - low) * row.cards;
}

UsageSum::UsageSum(const UsageFilter& filter, UsageKey by) : range_(RangeOf(filter)), by_(by) {}

void UsageSum::Add(const core::LedgerRow& row) {
  if (by_ == UsageKey::kDay) {
    AddDays(row);
  } else if (Touches(row, range_)) {
    AddPart(by_ == UsageKey::kRun ? fmt::format("{}", row.run) : TextKey(row, by_), row, range_);
  }
}

void UsageSum::AddPart(const std::string& key, const core::LedgerRow& row, const MsRange& part) {
  Sum& sum = sums_[{by_ == UsageKey::kRun ? row.run : 0, key}];
  sum.gpu_ms += GpuMsWithin(row, part);
  sum.runs.insert(row.run);
}

void UsageSum::AddDays(const core::LedgerRow& row) {
  const int64_t last = std::max(Low(row), High(row) - 1);
  for (int64_t day = FloorDay(Low(row)); day <= FloorDay(last); ++day) {
    const MsRange part = {std::max(range_.from_unix_ms, day * kDayMs), std::min(range_.to_unix_ms, (day + 1) * kDayMs)};
    if (Touches(row, part)) AddPart(DayName(day), row, part);
  }
}

std::vector<UsageRow> UsageSum::Rows() const {
  std::vector<UsageRow> rows;
  rows.reserve(sums_.size());
  for (const auto& [key, sum] : sums_) {
    rows.push_back({key.second, sum.gpu_ms, static_cast<int64_t>(sum.runs.size())});
  }
  return rows;
}

}  // namespace tp::store
