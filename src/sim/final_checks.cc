#include "sim/final_checks.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/strings.h"
#include "core/gates.h"
#include "core/resource.h"

namespace tp::sim {
namespace {

using core::JobState;

constexpr int kAllRows = 1'000'000;

bool WaitsForOthers(const core::RunWithSteps& run, const core::Step& step) {
  return core::Dependency(run, step) == core::DependencyState::kWaiting;
}

// No window is left that would have to open.
bool PausedForGood(const core::RunWithSteps& run, const core::Step& step) {
  return step.pause.owner || step.pause.admin || !run.run.snapshot_available;
}

std::string WhyRestless(const core::RunWithSteps& run, const core::Step& step) {
  const bool rests = core::IsTerminal(step.state) || (step.state == JobState::kPaused && PausedForGood(run, step)) ||
                     (step.state == JobState::kQueued && WaitsForOthers(run, step));
  if (rests) return "";
  std::string text = fmt::format("run {} step {} is {}", step.ref.run, step.ref.step, core::Name(step.state));
  if (step.attempt) {
    text += fmt::format(", {}", step.attempt->key);
    if (step.attempt->ending) text += fmt::format(", ending: {}", core::Name(step.attempt->ending->cause));
  }
  return text;
}

// What a restart would find must be what the loop holds. What is seen again within seconds is not kept:
// sights, heartbeats, trees that are not gone, the last seconds of running time.
core::Step Kept(core::Step step) {
  step.ran = absl::ZeroDuration();
  if (!step.attempt) return step;
  step.attempt->sight = {};
  for (RankObservation& rank : step.attempt->ranks) {
    rank.heartbeat.reset();
    if (rank.tree != Tree::kGone) rank.tree = Tree::kUnknown;
  }
  return step;
}

void CheckReload(Server& server, Journal& journal) {
  const auto loaded = server.store().Load();
  if (!loaded.ok()) {
    journal.Break("the store does not load: {}", Message(loaded.status()));
    return;
  }
  std::map<int64_t, const core::RunWithSteps*> stored;
  for (const core::RunWithSteps& run : loaded->runs) stored[run.run.n] = &run;
  if (stored.size() != server.loop().runs().size()) {
    journal.Break("the store has {} live runs, the loop {}", stored.size(), server.loop().runs().size());
  }
  for (const auto& [n, run] : server.loop().runs()) {
    if (!stored.contains(n) || stored.at(n)->steps.size() != run.steps.size()) {
      journal.Break("run {} is not stored as it is", n);
      continue;
    }
    for (size_t i = 0; i < run.steps.size(); ++i) {
      if (!(Kept(stored.at(n)->steps[i]) == Kept(run.steps[i]))) {
        journal.Break("run {} step {} is not stored as it is", n, i);
      }
    }
  }
}

void CheckOwedCorrections(Server& server, Journal& journal) {
  const auto loaded = server.store().Load();
  if (!loaded.ok()) return;
  const std::map<std::string, core::Correction>& owed = server.loop().corrections();
  if (loaded->corrections.size() != owed.size()) {
    journal.Break("the store has {} corrections that are owed, the loop {}", loaded->corrections.size(), owed.size());
  }
  for (const core::Correction& correction : loaded->corrections) {
    const auto found = owed.find(correction.target.key);
    if (found == owed.end() || !(found->second == correction)) {
      journal.Break("the correction of {} is not stored as it is", correction.target.key);
    }
  }
}

// Whoever followed the events knows the states.
void CheckEvents(Server& server, Journal& journal) {
  std::map<core::StepRef, JobState> followed;
  const auto events = server.store().EventsAfter(0, kAllRows);
  int64_t revision = 0;
  for (const store::EventRow& event : *events) {
    if (event.revision != ++revision) journal.Break("event {} where {} is next", event.revision, revision);
    JobState& state = followed.try_emplace({event.run, event.step}, JobState::kQueued).first->second;
    if (state != event.from) {
      journal.Break("event {} of run {} goes from {} on, it was {}", event.revision, event.run, core::Name(event.from),
                    core::Name(state));
    }
    state = event.to;
  }
  const auto page = server.store().ListRuns({}, std::nullopt, kAllRows);
  for (const core::RunWithSteps& run : page->runs) {
    for (const core::Step& step : run.steps) {
      const auto found = followed.find(step.ref);
      const JobState said = found == followed.end() ? JobState::kQueued : found->second;
      if (said != step.state) {
        journal.Break("run {} step {} is {}, its events say {}", step.ref.run, step.ref.step, core::Name(step.state),
                      core::Name(said));
      }
    }
  }
}

// Whoever follows the changes of words is told what each run came to.
void CheckWordChanges(Server& server, Journal& journal) {
  std::map<int64_t, core::RunWord> told;
  const auto changes = server.store().WordChangesAfter(0, kAllRows);
  for (const store::WordChange& change : *changes) {
    if (core::NoticeEventOf(change.row.to)) told[change.row.run] = change.row.to;  // else its cards were idle
  }
  const auto page = server.store().ListRuns({}, std::nullopt, kAllRows);
  for (const core::RunWithSteps& run : page->runs) {
    const core::RunWord word = core::RollUp(run.steps);
    const auto found = told.find(run.run.n);
    if (core::NoticeEventOf(word) && (found == told.end() || found->second != word)) {
      journal.Break("run {} is {}, and nobody could be told", run.run.n, core::Name(word));
    }
  }
}

void CheckSubmits(Server& server, const Promises& promises, Journal& journal) {
  std::map<std::string, std::set<int64_t>> made;
  const auto page = server.store().ListRuns({}, std::nullopt, kAllRows);
  for (const core::RunWithSteps& run : page->runs) {
    const auto label = run.run.labels.find("request");
    if (label != run.run.labels.end()) made[label->second].insert(run.run.n);
  }
  for (const auto& [request, runs] : made) {
    if (runs.size() > 1) journal.Break("request {} made {} runs", request, runs.size());
  }
  for (const auto& [request, run] : promises.submitted()) {
    if (!made[request].contains(run)) journal.Break("run {} of request {} was acknowledged and is lost", run, request);
  }
}

void CheckWorld(Server& server, const World& world, Journal& journal) {
  for (const auto& [key, attempt] : world.attempts()) {
    if (attempt.AnyProcess()) journal.Break("{}: processes are left and nobody follows them", key);
    if (!attempt.Clean() || !attempt.AllRecorded()) continue;
    const auto run = server.store().GetRun(attempt.ref.step.run);
    const bool told = run.ok() && run->steps[static_cast<size_t>(attempt.ref.step.step)].state == JobState::kSucceeded;
    if (!told) journal.Break("{}: every rank exited 0 and it is not SUCCEEDED", key);
  }
}

void CheckBills(Server& server, const World& world, const Monitor& monitor, Journal& journal) {
  for (const auto& [key, attempt] : world.attempts()) {
    const bool ran = attempt.AllStarted() && attempt.plan.story != Story::kNoRecords;
    if (ran && !monitor.billed().contains(attempt.ref)) journal.Break("{} ran and is not billed", key);
  }
  for (const core::AttemptRef& ref : monitor.Uncorrected()) {
    const AttemptTruth* attempt = world.Find(core::AttemptKey(kDeployment, ref));
    if (attempt != nullptr && attempt->plan.late_records_us) {
      journal.Break("{}: its records came late and its bill is not corrected", attempt->key);
    }
  }
  for (const absl::Status& status : {store::CheckLedger(server.store()), store::CheckCorrections(server.store()),
                                     store::CheckRuns(server.store()).status()}) {
    if (!status.ok()) journal.Break("{}", Message(status));
  }
}

// What is owed to the engines, and to the ledger where the records show sooner or later.
std::string WhyOwed(const store::Loaded& loaded, const World& world) {
  if (!loaded.outbox.empty()) {
    const store::OutboxRow& row = loaded.outbox.front();
    return fmt::format("an effect of kind {} is owed to {}", static_cast<int>(row.kind), row.target.key);
  }
  for (const core::Correction& correction : loaded.corrections) {
    const AttemptTruth* attempt = world.Find(correction.target.key);
    if (attempt != nullptr && attempt->plan.late_records_us) return attempt->key + " is not corrected";
  }
  return "";
}

}  // namespace

std::string Restless(Server& server, const World& world) {
  if (!server.up()) return "tpd is down";
  for (const auto& [n, run] : server.loop().runs()) {
    for (const core::Step& step : run.steps) {
      if (std::string why = WhyRestless(run, step); !why.empty()) return why;
    }
  }
  if (!server.Quiet()) return "a commit is under way";
  const auto loaded = server.store().Load();
  if (!loaded.ok()) return "";
  return WhyOwed(*loaded, world);
}

bool AtRest(Server& server, const World& world) { return Restless(server, world).empty(); }

void CheckAtRest(Server& server, const World& world, const Promises& promises, const Monitor& monitor, absl::Time now,
                 Journal& journal) {
  CheckReload(server, journal);
  CheckOwedCorrections(server, journal);
  CheckEvents(server, journal);
  CheckWordChanges(server, journal);
  CheckSubmits(server, promises, journal);
  CheckWorld(server, world, journal);
  CheckBills(server, world, monitor, journal);
  for (const core::StepRef& ref : Monitor::Overlooked(server.loop(), now)) {
    journal.Break("run {} step {} could start and nobody looks at it", ref.run, ref.step);
  }
}

}  // namespace tp::sim
