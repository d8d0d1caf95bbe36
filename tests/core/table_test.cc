// Every (state, event) pair over every step that random lives lead to, and docs/states.md, which is
// made from the table.
#include <array>
#include <cstdlib>
#include <fstream>
#include <random>
#include <sstream>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "world.h"

namespace tp::core::test {
namespace {

using Grid = std::array<std::array<int, kEventKindCount>, kJobStateCount>;

Observed Watched(std::vector<RankObservation> ranks) {
  Observed seen = Seen(std::move(ranks));
  seen.cards_watched = true;
  return seen;
}

std::vector<Event> Menu(const Step& step, int ranks, absl::Time at) {
  const auto all = [&](auto make) {
    std::vector<RankObservation> seen;
    for (int i = 0; i < ranks; ++i) seen.push_back(make(i));
    return seen;
  };
  std::vector<RankObservation> one_failed = all(Up);
  one_failed.back() = Over(ranks - 1, Exit(3));
  Present engine = std::get<Present>(Seen(all(Up), true).observation);
  engine.engine_end = EngineEnd::kPreempted;
  Present granted;
  granted.cards_granted = true;
  return {
      StopRequested{},
      PauseRequested{Holder::kOwner, absl::Seconds(5)},
      PauseRequested{Holder::kAdmin, absl::Seconds(5)},
      PauseRequested{Holder::kWindow, absl::Seconds(5)},
      ResumeRequested{Holder::kOwner, true},
      ResumeRequested{Holder::kAdmin, true},
      ResumeRequested{Holder::kWindow, true},
      ResumeRequested{Holder::kOwner, false},
      RetryRequested{true},
      RetryRequested{false},
      Admit(ranks, step.attempts + 1),
      DependencyFailed{"step export ended FAILED"},
      LaunchAnswered{LaunchAccepted{}},
      LaunchAnswered{LaunchRejected{LaunchRejected::Kind::kEngine, "bad"}},
      LaunchAnswered{LaunchRefused{"busy"}},
      LaunchAnswered{LaunchIndeterminate{"lost"}},
      FenceAnswered{FenceWon{}},
      FenceAnswered{FenceLost{"nonce"}},
      FenceAnswered{FenceFailed{"EIO"}},
      Nothing(),
      Gone(),
      Gone(Claim::kThisLaunch),
      Fenced(),
      Observed{granted},
      Seen(all([](int i) { return Rank(i, Tree::kUnknown); }), false, Claim::kNone),
      Seen(all([](int i) { return Rank(i, Tree::kUnknown); })),
      Seen(all(Up)),
      Seen(all([](int i) { return Over(i, Exit(0)); })),
      Seen(all([](int i) { return Over(i, Exit(0)); }), true),
      Seen(all([](int i) { return Over(i, Exit(0, 5000, SignalledBy::kTpd)); }), true),
      Seen(all([](int i) { return Over(i, Exit(0, 5000, SignalledBy::kOther)); }), true),
      Seen(all([](int i) { return Over(i, Killed(9)); }), true),
      Seen(all([](int i) { return Rank(i, Tree::kGone, Start(0)); }), true),
      Seen(one_failed),
      Observed{engine},
      TimerFired{},
      Watched(one_failed),
      CardsLooked{.began = at, .faults = {}},
      CardsLooked{.began = at, .faults = {{.node = "node-1", .card = 0, .why = "Xid 79"}}},
      CardPutBack{.node = "node-1", .card = 0},
  };
}

bool ChangedByUnknown(const Event& event, const Step& before, const Step& after) {
  const auto* observed = std::get_if<Observed>(&event);
  return observed && std::holds_alternative<Unknown>(observed->observation) && before.state != after.state;
}

// The rules that no event may break, whatever came before.
void CheckRules(const Step& before, const Event& event, const absl::StatusOr<Transition>& result) {
  const std::string where = fmt::format("{} in {}", Name(KindOf(event)), Name(before.state));
  if (!result.ok()) {
    ASSERT_TRUE(IsRequest(KindOf(event))) << where << ": " << result.status();
    ASSERT_EQ(result.status().code(), absl::StatusCode::kFailedPrecondition) << where;
    return;
  }
  const Step& after = result->next;
  ASSERT_EQ(BrokenInvariant(after), "") << where;
  ASSERT_FALSE(ChangedByUnknown(event, before, after)) << where;
  if (IsTerminal(before.state) && after.state != before.state) {
    ASSERT_EQ(KindOf(event), EventKind::kRetry) << where;
  }
  if (before.stop_requested && !IsTerminal(before.state)) {
    ASSERT_TRUE(HasAttempt(after.state) || IsTerminal(after.state)) << where;
  }
  ASSERT_GE(after.attempts, before.attempts) << where;
  ASSERT_EQ(after.attempts != before.attempts,
            KindOf(event) == EventKind::kAdmitted && before.state == JobState::kQueued)
      << where;
  if (before.attempt && !after.attempt) {
    ASSERT_TRUE(result->durable) << where;
    ASSERT_EQ(after.past.back().number, before.attempt->number) << where;
  }
}

TEST(Table, EveryStateAndEventInEveryReachableStep) {
  std::mt19937_64 random(20261130);
  Grid tried{};
  Grid legal{};
  for (int life = 0; life < 1200; ++life) {
    const int ranks = 1 + static_cast<int>(random() % 2);
    World w(ranks);
    w.policy.user_retries = static_cast<int>(random() % 2);
    w.policy.infrastructure_retries = static_cast<int>(random() % 2);
    if (random() % 2) w.step.spec.time_limit = absl::Seconds(20);
    if (random() % 2) w.step.spec.pending_timeout = absl::Seconds(20);
    w.policy.start_timeout = absl::Seconds(40);
    for (int i = 0; i < 20; ++i) {
      const std::vector<Event> menu = Menu(w.step, ranks, w.now);
      w.now += absl::Seconds(static_cast<int64_t>(random() % 12));
      for (const Event& event : menu) {
        const auto result = Apply(ProductTable(), w.step, event, w.now, w.policy);
        const auto state = static_cast<size_t>(w.step.state);
        const auto kind = static_cast<size_t>(KindOf(event));
        ++tried[state][kind];
        if (result.ok() && !result->taken.empty()) ++legal[state][kind];
        ASSERT_NO_FATAL_FAILURE(CheckRules(w.step, event, result));
      }
      (void)w.Try(menu[random() % menu.size()]);
    }
  }
  for (int state = 0; state < kJobStateCount; ++state) {
    for (int kind = 0; kind < kEventKindCount; ++kind) {
      EXPECT_GT(tried[static_cast<size_t>(state)][static_cast<size_t>(kind)], 0)
          << Name(static_cast<JobState>(state)) << " x " << Name(static_cast<EventKind>(kind));
    }
  }
}

TEST(Table, RequestsAlwaysHaveARow) {
  for (int state = 0; state < kJobStateCount; ++state) {
    for (int kind = 0; kind <= static_cast<int>(EventKind::kRetry); ++kind) {
      bool found = false;
      for (const Rule& rule : ProductTable()) {
        found = found || (rule.from.has(static_cast<JobState>(state)) && rule.on == static_cast<EventKind>(kind));
      }
      EXPECT_TRUE(found) << Name(static_cast<JobState>(state)) << " x " << Name(static_cast<EventKind>(kind));
    }
  }
}

std::string StatesOf(const Rule& rule) {
  std::string names;
  for (int state = 0; state < kJobStateCount; ++state) {
    if (!rule.from.has(static_cast<JobState>(state))) continue;
    if (!names.empty()) names += ", ";
    names += Name(static_cast<JobState>(state));
  }
  return names;
}

std::string Words(bool yes) { return yes ? "yes" : "no"; }

std::string StatesPage() {
  std::ostringstream page;
  page << "# Job states\n\nMade from `src/core/table.cc` by `tests/core/table_test.cc`; run it with TP_UPDATE_DOCS=1 "
          "after a change.\n\n| state | holds cards | job slot | meter | over |\n| --- | --- | --- | --- | --- |\n";
  for (const StateTraits& state : kStateTraits) {
    const std::string cards = state.cards == CardUse::kNone       ? "no"
                              : state.cards == CardUse::kReserved ? "reserved"
                                                                  : "yes";
    page << "| " << state.name << " | " << cards << " | " << Words(state.job_slot) << " | " << Words(state.metered)
         << " | " << Words(state.terminal) << " |\n";
  }
  page << "\n## Transitions\n\nRows of one state and event are tried in order; the first whose condition holds is "
          "taken. Without a row a request is refused (FAILED_PRECONDITION) and anything else is late and changes "
          "nothing. `again`: the same event is then looked at once more.\n\n| state | event | when | becomes | and |\n"
          "| --- | --- | --- | --- | --- |\n";
  for (const Rule& rule : ProductTable()) {
    page << "| " << StatesOf(rule) << " | " << Name(rule.on) << " | " << (rule.when.empty() ? "always" : rule.when)
         << " | " << (rule.to ? Name(*rule.to) : "the same") << " | " << rule.then
         << (rule.then_what == Then::kAgain ? "; again" : "") << " |\n";
  }
  page << "\n## Kinds of failure\n\n| kind | automatic retry from |\n| --- | --- |\n";
  for (const FailureTraits& kind : kFailureTraits) {
    const std::string budget = kind.budget == RetryBudget::kNever  ? "never"
                               : kind.budget == RetryBudget::kUser ? "the user budget"
                                                                   : "the infrastructure budget";
    page << "| " << kind.name << " | " << budget << " |\n";
  }
  return page.str();
}

TEST(Table, DocumentIsCurrent) {
  const std::string path = std::string(TP_SOURCE_DIR) + "/docs/states.md";
  const std::string page = StatesPage();
  if (std::getenv("TP_UPDATE_DOCS")) std::ofstream(path) << page;
  std::ifstream file(path);
  std::stringstream committed;
  committed << file.rdbuf();
  EXPECT_EQ(committed.str(), page) << "run this test with TP_UPDATE_DOCS=1 and commit docs/states.md";
}

}  // namespace
}  // namespace tp::core::test
