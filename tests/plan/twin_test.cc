// The planner against its twin, operation by operation: the same steps start, in the same order, on the
// same cards; between two operations nothing would start before the planner's next wake.
#include "twin.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <set>
#include <sstream>

#include "core/ledger.h"
#include "plan/planner.h"

namespace tp::plan {
namespace {

enum class OpKind : uint8_t {
  kSubmit,
  kRunning,
  kEnd,
  kRefuse,
  kLoseCard,
  kPause,
  kResume,
  kHold,
  kRelease,
  kPriority,
  kTimeLimit,
  kQuota,
  kReload,
  kHoldOpen,
  kCorrect,
  kAdvance,
};
constexpr const char* kOpNames[] = {"submit", "running",   "end",     "refuse",   "lose card",  "pause",
                                    "resume", "hold",      "release", "priority", "time limit", "quota",
                                    "reload", "hold open", "correct", "advance"};

struct Op {
  OpKind kind = OpKind::kSubmit;
  uint32_t a = 0;
  uint32_t b = 0;
  uint32_t c = 0;
};

std::ostream& operator<<(std::ostream& out, const Op& op) {
  return out << kOpNames[static_cast<int>(op.kind)] << " " << op.a << " " << op.b << " " << op.c;
}

struct Wish {
  std::vector<std::string> profiles;
  std::vector<TwinPool> pools;
};

const std::vector<Wish>& Wishes() {
  static const std::vector<Wish> wishes = {
      {{"x:1"}, {{"x", 1, 1}}},
      {{"x:3"}, {{"x", 1, 3}}},
      {{"x:4"}, {{"x", 1, 4}}},
      {{"x:8"}, {{"x", 2, 4}}},
      {{"y:2"}, {{"y", 1, 2}}},
      {{"y:4"}, {{"y", 1, 4}}},
      {{"y:12"}, {{"y", 3, 4}}},
      {{"w:2"}, {{"w", 1, 2}}},
      {{"w:4"}, {{"w", 2, 2}}},
      {{"c:1"}, {{"c", 1, 0}}},
      {{"c:2"}, {{"c", 2, 0}}},
      {{"a=x:4", "b=y:4"}, {{"x", 1, 4}, {"y", 1, 4}}},
      {{"a=x:8", "b=y:4"}, {{"x", 2, 4}, {"y", 1, 4}}},
      {{"a=y:4", "b=x:8"}, {{"y", 1, 4}, {"x", 2, 4}}},
  };
  return wishes;
}

core::Series SeriesOf(const std::string& name, int gpus, const std::vector<std::string>& nodes) {
  core::Series series;
  series.name = name;
  series.gpus_per_node = gpus;
  series.executor = "gpu/kube";
  series.executor_distributed = "gpu/kube";
  for (const std::string& node : nodes) series.nodes.push_back({.name = node, .address = "10.0.0.1"});
  return series;
}

// Of x, in order: what y can use as well comes first, so that a pool has to leave it to another.
std::vector<std::string> NodesOfX(bool small) {
  return small ? std::vector<std::string>{"n1"} : std::vector<std::string>{"n3", "n1", "n4", "n2"};
}

// n3 and n4 belong to two series; `small` leaves nodes out.
std::shared_ptr<const core::Registry> MakeRegistry(bool small) {
  auto registry = std::make_shared<core::Registry>();
  core::Executor executor;
  executor.name = "gpu/kube";
  executor.provider = "gpu";
  executor.profile = "kube";
  executor.backend = "kubernetes_job";
  executor.config_json = "{}";
  registry->executors[executor.name] = executor;
  registry->series["x"] = SeriesOf("x", 4, NodesOfX(small));
  registry->series["y"] = SeriesOf("y", 4, {"n3", "n4", "n5"});
  registry->series["w"] = SeriesOf("w", 2, {"n6", "n7"});
  registry->series["c"] = SeriesOf("c", 0, {"n8", "n9"});
  core::Window window;
  for (int day = 0; day < 7; ++day) window.open.push_back({day, 8 * 60, 20 * 60});
  registry->series["w"].windows = {window};
  for (const char* name : {"x", "y", "w", "c"}) {
    core::Profile profile;
    profile.name = name;
    profile.series = name;
    registry->profiles[name] = profile;
  }
  return registry;
}

core::Policy PolicyOf(bool fair_share) {
  core::Policy policy;
  policy.fair_share = fair_share;
  policy.fair_share_half_life = absl::Hours(7 * 24);
  return policy;
}

// Four hours before a month ends.
constexpr int64_t kBeginUnixS = 1'801'425'600;

class Pair {
 public:
  explicit Pair(bool fair_share)
      : policy_(PolicyOf(fair_share)), planner_(policy_, absl::UTCTimeZone(), MakeRegistry(false)) {
    twin_.windowed_series = "w";
    twin_.fair_share = fair_share;
    FillNodes(false);
  }

  void Do(const Op& op) {
    switch (op.kind) {
      case OpKind::kSubmit:
        return Submit(op);
      case OpKind::kRunning:
        if (auto* run = Pick(op.a, [](const core::Step& step) { return step.attempt && !step.attempt->meter; })) {
          Running(*run);
        }
        return;
      case OpKind::kEnd:
        if (auto* run = Pick(op.a, [](const core::Step& step) { return !core::IsTerminal(step.state); })) {
          Set(*run, core::JobState::kStopped);
        }
        return;
      case OpKind::kRefuse:
        if (auto* run = Pick(op.a, Live)) {
          run->steps[0].backoff_until = now_ + absl::Seconds(op.b % 600);
          Set(*run, core::JobState::kQueued);
        }
        return;
      case OpKind::kLoseCard:
        if (auto* run = Pick(op.a, Live)) {
          core::Step& step = run->steps[0];
          step.avoid_node = step.attempt->placement[0].ranks[0].node;
          step.cooldown_until = now_ + absl::Seconds(60);
          Set(*run, core::JobState::kQueued);
        }
        return;
      case OpKind::kPause:
        if (auto* run = Pick(op.a, [](const core::Step& step) { return !core::IsTerminal(step.state); })) {
          Set(*run, core::JobState::kPaused);
        }
        return;
      case OpKind::kResume:
        if (auto* run = Pick(op.a, InState<core::JobState::kPaused>)) Set(*run, core::JobState::kQueued);
        return;
      case OpKind::kHold:
        if (auto* run = Pick(op.a, InState<core::JobState::kQueued>)) Hold(*run, true);
        return;
      case OpKind::kRelease:
        if (auto* run = Pick(op.a, [](const core::Step& step) { return step.hold.owner; })) Hold(*run, false);
        return;
      case OpKind::kPriority:
        if (auto* run = Pick(op.a, InState<core::JobState::kQueued>)) {
          run->run.priority = PriorityOf(op.b);
          Follow(*run);
        }
        return;
      case OpKind::kTimeLimit:
        if (auto* run = Pick(op.a, [](const core::Step& step) { return !core::IsTerminal(step.state); })) {
          if (run->steps[0].spec.time_limit == LimitOf(op.b)) return;
          run->steps[0].spec.time_limit = LimitOf(op.b);
          Follow(*run);
          TwinJob& job = twin_.jobs.at(run->steps[0].ref);
          if (job.live()) job.ends = now_ + job.limit;
        }
        return;
      case OpKind::kQuota:
        return Quota(op);
      case OpKind::kReload:
        return Reload(op.a % 3 == 0);
      case OpKind::kHoldOpen:
        twin_.held_open_until = now_ + absl::Minutes(op.a % 600);
        planner_.HoldOpen("w", *twin_.held_open_until);
        return;
      case OpKind::kCorrect:
        return Correct(op);
      case OpKind::kAdvance:
        return Advance(absl::Seconds(1 + op.a % (op.b % 4 == 0 ? 8 * 3600 : 1200)));
    }
  }

  // Both look; what starts must be the same.
  std::string Look() {
    twin_.metered_to = now_;
    planner_.BeginTurn(now_);
    for (const ShapeChange& change : planner_.TakeShapeChanges()) {
      core::RunWithSteps& run = runs_.at(change.step.run);
      run.steps[0].hold.shape = change.why_not;
      Follow(run);
    }
    std::vector<TwinStart> starts;
    while (auto start = planner_.Next()) {
      starts.push_back({start->step, CardsOf(start->placement)});
      Launch(runs_.at(start->step.run), *std::move(start));
      RC_ASSERT(starts.size() < 1000u);
    }
    CheckImage();
    const std::vector<TwinStart> expected = TwinStarts(twin_, now_);
    if (!(starts == expected)) RC_FAIL(Text("started", starts) + "\n" + Text("the twin", expected));
    for (const TwinStart& start : starts) {
      RC_ASSERT(!TwinOverQuota(twin_, start.ref));
    }
    return starts.empty() ? "" : Text("started", starts);
  }

  // Another planner that is made of what this one knows agrees with it: all that starts has started.
  void CheckImage() const {
    const Image image = planner_.TakeImage();
    Planner other(image);
    other.BeginTurn(now_);
    if (const auto start = other.Next()) RC_FAIL("made anew it starts " + std::to_string(start->step.run));
    const auto same_step = [](const auto& a, const auto& b) { return a.first == b.first; };
    RC_ASSERT(std::equal(planner_.reservations().begin(), planner_.reservations().end(), other.reservations().begin(),
                         other.reservations().end(), same_step));
  }

  double minutes() const { return absl::ToDoubleMinutes(now_ - absl::FromUnixSeconds(kBeginUnixS)); }
  int64_t starts() const { return launches_; }

 private:
  static bool Live(const core::Step& step) { return step.attempt.has_value(); }
  template <core::JobState kState>
  static bool InState(const core::Step& step) {
    return step.state == kState;
  }
  static int32_t PriorityOf(uint32_t draw) { return draw % 3 == 0 ? 50 : static_cast<int32_t>(48 + draw % 6); }
  static std::optional<absl::Duration> LimitOf(uint32_t draw) {
    constexpr int kMinutes[] = {0, 5, 20, 60, 180, 800};
    const int minutes = kMinutes[draw % 6];
    if (minutes == 0) return std::nullopt;
    return absl::Minutes(minutes);
  }

  static std::vector<std::pair<std::string, int>> CardsOf(const std::vector<PoolPlacement>& placement) {
    std::vector<std::pair<std::string, int>> cards;
    for (const PoolPlacement& pool : placement) {
      for (const RankPlacement& rank : pool.ranks) {
        if (rank.cards.empty()) cards.emplace_back(rank.node, -1);
        for (const int card : rank.cards) cards.emplace_back(rank.node, card);
      }
    }
    return cards;
  }

  static std::string Text(const std::string& who, const std::vector<TwinStart>& starts) {
    std::ostringstream out;
    out << who << ":";
    for (const TwinStart& start : starts) {
      out << " " << start.ref.run << " on";
      for (const auto& [node, card] : start.cards) out << " " << node << "/" << card;
      out << ";";
    }
    return out.str();
  }

  template <typename Matches>
  core::RunWithSteps* Pick(uint32_t draw, const Matches& matches) {
    std::vector<core::RunWithSteps*> found;
    for (auto& [n, run] : runs_) {
      if (matches(run.steps[0])) found.push_back(&run);
    }
    return found.empty() ? nullptr : found[draw % found.size()];
  }

  void FillNodes(bool small) {
    twin_.series_nodes = {{"x", NodesOfX(small)}, {"y", {"n3", "n4", "n5"}}, {"w", {"n6", "n7"}}, {"c", {"n8", "n9"}}};
    for (int node = 1; node <= 9; ++node)
      twin_.node_cards["n" + std::to_string(node)] = node <= 5 ? 4 : node <= 7 ? 2 : 0;
  }

  void Submit(const Op& op) {
    const Wish& wish = Wishes()[op.a % Wishes().size()];
    core::RunWithSteps run;
    run.run.n = ++last_run_;
    run.run.owner = std::string(1, static_cast<char>('a' + op.b % 3));
    run.run.priority = PriorityOf(op.b / 3);
    run.run.created_at = now_;
    core::Step step;
    step.ref = {run.run.n, 0};
    step.spec.profiles = wish.profiles;
    step.spec.time_limit = LimitOf(op.c);
    step.created_at = step.entered_at = now_;
    run.steps = {step};
    wishes_[step.ref] = wish.pools;
    Follow(runs_[run.run.n] = run);
  }

  void Launch(core::RunWithSteps& run, Start start) {
    ++launches_;
    core::Step& step = run.steps[0];
    step.attempts += 1;
    core::Attempt attempt;
    attempt.number = step.attempts;
    attempt.shape = std::move(start.shape);
    attempt.placement = std::move(start.placement);
    step.attempt = std::move(attempt);
    step.state = core::JobState::kSubmitted;
    planner_.Follow(run, step, now_);
  }

  void Running(core::RunWithSteps& run) {
    core::Step& step = run.steps[0];
    step.state = core::JobState::kRunning;
    step.attempt->meter.emplace();
    step.attempt->meter->seen_at = now_;
    planner_.Follow(run, step, now_);
    TwinJob& job = twin_.jobs.at(step.ref);
    job.ends = now_ + job.limit;
    job.metered_from = now_;
  }

  // The ledger's rows of an attempt that ends now.
  void Bill(const core::RunWithSteps& run) {
    const core::Step& step = run.steps[0];
    if (!step.attempt || !step.attempt->meter) return;
    absl::Time from = step.attempt->meter->seen_at;
    while (from < now_) {
      const core::Month month = core::MonthOf(from, absl::UTCTimeZone());
      const absl::Time to = std::min(now_, month.ends);
      Settle(run.run.owner, from, to, absl::ToInt64Milliseconds(to - from) * step.attempt->cards());
      from = to;
    }
  }

  void Settle(const std::string& owner, absl::Time from, absl::Time to, int64_t gpu_ms) {
    planner_.AddSettled(core::MonthOf(from, absl::UTCTimeZone()).name, owner, gpu_ms);
    planner_.AddUse(owner, absl::ToUnixMillis(to), gpu_ms);
    const absl::Time hour = absl::FromUnixSeconds(absl::ToUnixSeconds(to) / 3600 * 3600);
    twin_.used.push_back({owner, absl::ToCivilMonth(from, absl::UTCTimeZone()), hour, gpu_ms});
  }

  // A flagged end is corrected: at most what was settled is taken back.
  void Correct(const Op& op) {
    if (twin_.used.empty()) return;
    const TwinUse use = twin_.used[op.a % twin_.used.size()];
    if (use.gpu_ms <= 0 || !corrected_.insert(op.a % twin_.used.size()).second) return;
    const int64_t gpu_ms = -(use.gpu_ms * static_cast<int64_t>(op.b % 100) / 100);
    planner_.AddSettled(core::MonthOf(absl::FromCivil(use.month, absl::UTCTimeZone()), absl::UTCTimeZone()).name,
                        use.owner, gpu_ms);
    planner_.AddUse(use.owner, absl::ToUnixMillis(use.ended), gpu_ms);
    twin_.used.push_back({use.owner, use.month, use.ended, gpu_ms});
  }

  void Set(core::RunWithSteps& run, core::JobState state) {
    Bill(run);
    core::Step& step = run.steps[0];
    step.state = state;
    step.attempt.reset();
    step.entered_at = now_;
    Follow(run);
  }

  void Hold(core::RunWithSteps& run, bool held) {
    run.steps[0].hold.owner = held;
    Follow(run);
  }

  void Follow(core::RunWithSteps& run) {
    const core::Step& step = run.steps[0];
    planner_.Follow(run, step, now_);
    TwinJob& job = twin_.jobs[step.ref];
    job.ref = step.ref;
    job.owner = run.run.owner;
    job.pools = wishes_.at(step.ref);
    job.priority = run.run.priority;
    job.submitted = run.run.created_at;
    job.has_limit = step.spec.time_limit.has_value();
    job.limit = step.spec.time_limit.value_or(policy_.default_time_limit);
    job.avoid = step.avoid_node;
    job.queued = step.state == core::JobState::kQueued;
    job.held = step.hold.owner || !step.hold.shape.empty();
    job.not_before.reset();
    for (const auto& until : {step.cooldown_until, step.backoff_until}) {
      if (until && (!job.not_before || *until > *job.not_before)) job.not_before = until;
    }
    if (step.attempt) return;
    job.cards.clear();
    job.metered_from.reset();
  }

  void Quota(const Op& op) {
    const std::string user(1, static_cast<char>('a' + op.a % 3));
    core::QuotaRule rule;
    rule.id = static_cast<int64_t>(op.a % 3) + 1;
    rule.user = user;
    rule.set_at = now_;
    TwinQuota quota;
    if (op.b % 2 == 0) rule.limits.gpus = quota.gpus = static_cast<int>(op.b / 2 % 14);
    if (op.b % 3 == 0) rule.limits.jobs = quota.jobs = static_cast<int>(op.b / 3 % 5);
    if (op.c % 3 == 0) rule.limits.series_gpus["x"] = quota.series["x"] = static_cast<int>(op.c / 3 % 9);
    if (op.c % 5 == 0) rule.limits.gpu_hours = quota.gpu_hours = static_cast<int>(op.c / 5 % 40);
    twin_.quotas[user] = quota;
    planner_.PutRule(std::move(rule));
  }

  void Reload(bool small) {
    planner_.SetRegistry(MakeRegistry(small), now_);
    FillNodes(small);
  }

  // Nothing may start before the planner wants to be woken, though time goes on.
  void Advance(absl::Duration by) {
    const absl::Time to = now_ + by;
    const absl::Time wakes = planner_.NextWake().value_or(absl::InfiniteFuture());
    const absl::Time before = std::min(to, wakes - absl::Seconds(1));
    if (before > now_) {
      TwinWorld copy = twin_;
      const auto missed = TwinStarts(copy, before);
      if (!missed.empty()) RC_FAIL(Text("nobody woke up for", missed));
    }
    now_ = to;
  }

  const core::Policy policy_;
  Planner planner_;
  TwinWorld twin_;
  absl::Time now_ = absl::FromUnixSeconds(kBeginUnixS);
  int64_t last_run_ = 0;
  int64_t launches_ = 0;
  std::map<int64_t, core::RunWithSteps> runs_;
  std::map<core::StepRef, std::vector<TwinPool>> wishes_;
  std::set<size_t> corrected_;  // of twin_.used
};

rc::Gen<Op> AnyOp() {
  const auto kind = rc::gen::weightedElement<OpKind>({{10, OpKind::kSubmit},
                                                      {4, OpKind::kRunning},
                                                      {5, OpKind::kEnd},
                                                      {2, OpKind::kRefuse},
                                                      {1, OpKind::kLoseCard},
                                                      {1, OpKind::kPause},
                                                      {2, OpKind::kResume},
                                                      {1, OpKind::kHold},
                                                      {1, OpKind::kRelease},
                                                      {2, OpKind::kPriority},
                                                      {1, OpKind::kTimeLimit},
                                                      {3, OpKind::kQuota},
                                                      {1, OpKind::kReload},
                                                      {1, OpKind::kHoldOpen},
                                                      {1, OpKind::kCorrect},
                                                      {6, OpKind::kAdvance}});
  const auto draw = rc::gen::resize(100, rc::gen::inRange<uint32_t>(0, 1'000'000));
  return rc::gen::construct<Op>(kind, draw, draw, draw);
}

constexpr int kHistories = 100;      // what the library does by itself
constexpr size_t kOperations = 130;  // each

TEST(Twin, StartsTheSameInTheSameOrder) {
  // The same histories every time; RC_PARAMS="seed=N" plays others.
  setenv("RC_PARAMS", "seed=1 noshrink=1", /*overwrite=*/0);
  int64_t starts = 0;
  const bool held = rc::check("the planner and its twin", [&] {
    const auto ops = *rc::gen::container<std::vector<Op>>(kOperations, AnyOp());
    Pair pair(*rc::gen::arbitrary<bool>());
    for (const Op& op : ops) {
      pair.Do(op);
      RC_LOG() << pair.minutes() << " " << op << " | " << pair.Look() << "\n";
    }
    starts += pair.starts();
  });
  EXPECT_TRUE(held);
  EXPECT_GT(starts, kHistories * 20);
}

}  // namespace
}  // namespace tp::plan
