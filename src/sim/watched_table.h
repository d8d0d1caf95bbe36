// A state table that tells of every row it takes: for coverage, and so that no transition happens
// unseen. Rows are plain function pointers, so what they report to is the thread's newest WatchedTable;
// one may be alive at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/table.h"

namespace tp::sim {

// Hits of each row from each state.
class Coverage {
 public:
  explicit Coverage(const core::Table& table) : hits_(table.size()) {}

  void Add(size_t row, core::JobState from) { ++hits_[row][static_cast<size_t>(from)]; }
  void Add(const Coverage& other);
  int64_t Hits(size_t row, core::JobState from) const { return hits_[row][static_cast<size_t>(from)]; }

 private:
  std::vector<std::array<int64_t, core::kJobStateCount>> hits_;
};

// What a row found and what it made of it.
struct TakenRow {
  size_t index = 0;
  const core::Rule& rule;
  core::JobState from = core::JobState::kQueued;
  core::JobState to = core::JobState::kQueued;
  const core::Step& before;    // with the event's observation already taken in
  const core::Change& change;  // after the action
};

class WatchedTable {
 public:
  class Watcher {
   public:
    virtual ~Watcher() = default;
    virtual void Took(const TakenRow& row) = 0;
  };

  // Both outlive it.
  WatchedTable(const core::Table& table, Watcher& watcher);
  ~WatchedTable();
  WatchedTable(const WatchedTable&) = delete;
  WatchedTable& operator=(const WatchedTable&) = delete;

  const core::Table& table() const { return watched_; }

 private:
  core::Table watched_;
};

}  // namespace tp::sim
