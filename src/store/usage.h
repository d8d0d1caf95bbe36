// gpu_seconds by whatever people ask for, derived from ledger rows; the same sums for every store.
// Pure.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/ledger.h"
#include "store/store.h"

namespace tp::store {

// The filter's time range in the ledger's unit: [from, to).
struct MsRange {
  int64_t from_unix_ms = 0;
  int64_t to_unix_ms = 0;
};
MsRange RangeOf(const UsageFilter& filter);

// Whether any of the row's interval lies in the range; an empty interval counts at its start. The
// interval of a delta row may run backwards.
bool Touches(const core::LedgerRow& row, const MsRange& range);

// Whether Reader::Ledger returns the row.
bool Matches(const core::LedgerRow& row, const UsageFilter& filter);

// gpu_ms of the part of the row that lies in the range; negative where the interval runs backwards.
int64_t GpuMsWithin(const core::LedgerRow& row, const MsRange& range);

// Sums rows that match `filter`, cut to its range. Days are UTC days; months are those of the rows.
class UsageSum {
 public:
  UsageSum(const UsageFilter& filter, UsageKey by);

  void Add(const core::LedgerRow& row);
  std::vector<UsageRow> Rows() const;  // by key; runs by number

 private:
  struct Sum {
    int64_t gpu_ms = 0;
    std::set<int64_t> runs;
  };

  void AddPart(const std::string& key, const core::LedgerRow& row, const MsRange& part);
  void AddDays(const core::LedgerRow& row);

  MsRange range_;
  UsageKey by_;
  std::map<std::pair<int64_t, std::string>, Sum> sums_;
};

}  // namespace tp::store
