#include "sim/watched_table.h"

#include <utility>

namespace tp::sim {
namespace {

constexpr size_t kMostRows = 128;

thread_local const core::Table* current_table = nullptr;
thread_local WatchedTable::Watcher* current_watcher = nullptr;

template <size_t kRow>
void Act(core::Change& change) {
  const core::Rule& rule = (*current_table)[kRow];
  const core::Step before = change.step;
  rule.act(change);
  current_watcher->Took({kRow, rule, before.state, rule.to.value_or(before.state), before, change});
}

template <size_t... kRows>
constexpr std::array<void (*)(core::Change&), sizeof...(kRows)> MakeActs(std::index_sequence<kRows...>) {
  return {&Act<kRows>...};
}

constexpr auto kActs = MakeActs(std::make_index_sequence<kMostRows>{});

}  // namespace

void Coverage::Add(const Coverage& other) {
  for (size_t row = 0; row < hits_.size(); ++row) {
    for (size_t state = 0; state < hits_[row].size(); ++state) hits_[row][state] += other.hits_[row][state];
  }
}

WatchedTable::WatchedTable(const core::Table& table, Watcher& watcher) : watched_(table) {
  current_table = &table;
  current_watcher = &watcher;
  for (size_t row = 0; row < watched_.size(); ++row) watched_[row].act = kActs.at(row);
}

WatchedTable::~WatchedTable() {
  current_table = nullptr;
  current_watcher = nullptr;
}

}  // namespace tp::sim
