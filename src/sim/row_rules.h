// The rules that hold for every row of the table, checked against the hidden truth as it is taken. They
// keep a reading of their own of why an attempt is ending, apart from core's.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "sim/journal.h"
#include "sim/watched_table.h"
#include "sim/world.h"

namespace tp::sim {

class RowRules : public WatchedTable::Watcher {
 public:
  // All outlive the rules. `policy` is what the product ought to follow.
  RowRules(const core::Table& table, const core::Policy& policy, const Timeline& timeline, Journal& journal,
           const World& world);

  void Took(const TakenRow& row) override;

  const Coverage& coverage() const { return coverage_; }

 protected:
  // tpd has died: what it had decided and not committed is not so. `kept` are the steps it starts with.
  void ForgetReadings(const std::map<std::string, const core::Step*>& kept);

 private:
  // What is known of an attempt's end, from rows alone.
  struct Reading {          // moments on the true clock
    bool evidence = false;  // the records named an end before any signal was sent
    std::optional<core::EndCause> signalled_for;
    std::optional<absl::Time> warned_at;
    std::optional<absl::Time> termed_at;
    absl::Duration grace;         // of the warning
    absl::Duration watched;       // since the cards were granted, without gaps
    absl::Duration watched_term;  // since TERM, without gaps
    bool granted = false;         // by the sight before
    std::optional<absl::Time> seen_at;
    bool card_fault = false;            // the loop was told that one of its cards is broken
    std::optional<int64_t> look_us;     // when it began to wait for a look at its cards
    absl::Duration wall_ahead_at_look;  // of tpd's clock, then
  };

  void CheckUnknown(const TakenRow& row);
  void CheckCounters(const TakenRow& row);
  void CheckHolders(const TakenRow& row);
  void Read(const TakenRow& row);
  void ReadSignals(const TakenRow& row, Reading& reading);
  void CheckDeadline(const TakenRow& row, const Reading& reading);
  void CheckLive(const TakenRow& row);
  void CheckLeft(const TakenRow& row);
  void CheckTruthOfEnd(const TakenRow& row, const AttemptTruth& truth);
  void CheckOutcome(const TakenRow& row);
  void CheckFailure(const TakenRow& row, const AttemptTruth& truth);
  void ReadCards(const TakenRow& row, Reading& reading);
  void CheckCardsNamed(const TakenRow& row, const AttemptTruth& truth);
  bool LookWasDue(const Reading& reading, const AttemptTruth& truth) const;
  void CheckMeterSettled(const TakenRow& row, const AttemptTruth& truth);
  bool Explains(const AttemptTruth& truth, const core::Step& step, core::FailureKind kind) const;
  bool RanFor(const core::StepRef& step, absl::Duration limit) const;
  bool RetryIsDue(const core::Step& before, core::FailureKind kind) const;

  const core::Policy& policy_;
  const Timeline& timeline_;
  Journal& journal_;
  const World& world_;
  Coverage coverage_;
  std::map<std::string, Reading> readings_;  // by key
};

}  // namespace tp::sim
