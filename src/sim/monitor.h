// The rules that hold for the loop as a whole, at every turn, launch and commit. What a crash takes back
// it forgets.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/node_book.h"
#include "core/quota.h"
#include "loop/loop.h"
#include "sim/promises.h"
#include "sim/row_rules.h"
#include "store/memory_store.h"

namespace tp::sim {

// The deployment that every simulated key belongs to.
inline const core::Deployment kDeployment = {"sim", 1};

class Monitor : public RowRules {
 public:
  // All outlive the monitor. `policy` is what the loop ought to follow.
  Monitor(const core::Table& table, const core::Policy& policy, const Timeline& timeline, Journal& journal,
          const World& world, const Promises& promises);

  void Took(const TakenRow& row) override;
  void Turned(const loop::Loop& loop, bool quiet);
  void Launching(store::MemoryStore& store, const AttemptTarget& target, const LaunchSpec& spec);
  void Committed(const store::Txn& txn);
  void Restarted(const loop::Loop& loop);

  // Attempts that are in the ledger.
  const std::set<core::AttemptRef>& billed() const { return billed_; }
  // Those that are there with a flagged end and have not been corrected.
  std::vector<core::AttemptRef> Uncorrected() const;

  // Every queued step whose gates are all open.
  static std::vector<core::StepRef> Overlooked(const loop::Loop& loop, absl::Time now);

 private:
  void CheckLedger(const store::Txn& txn);
  void CheckCorrection(const core::AttemptRef& ref, std::vector<core::LedgerRow> rows);
  void CheckPaths(const loop::Loop& loop);
  void CheckArrays(const loop::Loop& loop);
  void CheckCards(const loop::Loop& loop);
  void CheckAdmissions(const loop::Loop& loop);
  void CheckQuotas(const store::Txn& txn);
  void CheckQuota(core::StepRef started);
  void TakeMarks(const store::Txn& txn);
  void CheckNodes(const core::Step& started);
  void CheckWindows(const loop::Loop& loop);
  std::string AgainstWindow(const loop::Loop& loop, const core::RunWithSteps& run, const core::Step& step) const;

  const Timeline& timeline_;
  Journal& journal_;
  const World& world_;
  const Promises& promises_;
  std::map<core::StepRef, core::JobState> states_;
  std::map<core::StepRef, std::vector<std::pair<core::JobState, core::JobState>>> paths_;  // of this turn
  // As committed, for the quotas.
  struct Live {
    int32_t number = 0;  // of the attempt; of a sum: how many
    int64_t cards = 0;
    int64_t of_series = 0;
  };
  core::QuotaBook rules_;
  core::NodeBook nodes_;
  std::map<int64_t, std::string> owners_;
  std::map<core::StepRef, Live> live_;
  std::map<core::StepRef, int32_t> admitted_;        // the newest attempt
  std::map<core::StepRef, int64_t> against_window_;  // since when, in virtual time
  std::set<std::string> launched_;
  std::map<core::StepRef, int32_t> last_launched_;
  std::set<core::AttemptRef> billed_;
  std::map<core::AttemptRef, std::vector<core::LedgerRow>> flagged_;  // of billed_
  std::set<core::AttemptRef> corrected_;
  int64_t turns_ = 0;
};

}  // namespace tp::sim
