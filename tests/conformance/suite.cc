#include "tests/conformance/suite.h"

#include <csignal>
#include <future>
#include <set>
#include <thread>

#include <fmt/format.h>

#include "base/overloaded.h"

namespace tp::conformance {

namespace {

// For the messages of failures.
std::string WhyUnknown(const Observation& seen) {
  if (const auto* unknown = std::get_if<Unknown>(&seen)) return "Unknown: " + unknown->why;
  if (const auto* present = std::get_if<Present>(&seen)) return "Present: " + present->reason;
  return "Absent";
}

}  // namespace

namespace {

std::string WordsOf(const LaunchResult& result) {
  return std::visit(Overloaded{
                        [](const tp::LaunchAccepted&) { return std::string("accepted"); },
                        [](const LaunchRejected& rejected) { return "rejected: " + rejected.reason; },
                        [](const LaunchRefused& refused) { return "refused: " + refused.reason; },
                        [](const LaunchIndeterminate& lost) { return "indeterminate: " + lost.reason; },
                    },
                    result);
}

}  // namespace

Conformance::Conformance() : world_(GetParam().make()) {}

LaunchSpec Conformance::Spec(const std::vector<std::string>& programs) { return SpecOf(++runs_, programs, "nonce-1"); }

LaunchSpec Conformance::SpecOf(int run, const std::vector<std::string>& programs, const std::string& nonce) const {
  LaunchSpec spec;
  spec.key = fmt::format("tp-{}-e1-{}-s0-a1", world_->deployment(), run);
  spec.owner = "ada";
  spec.run_id = fmt::format("train-{}", run);
  spec.step_name = "train";
  spec.attempt = 1;
  const std::string run_dir = fmt::format("{}/{}/{}", world_->storage_root(), spec.owner, spec.run_id);
  spec.paths = {run_dir + "/attempts/train-1", run_dir + "/attempts/train-1/work", run_dir + "/output",
                run_dir + "/results/train"};
  spec.argv = world_->Command();
  spec.overrides_json = {"{}"};
  spec.log_max_bytes = 1 << 20;
  spec.heartbeat_ms = 50;
  for (size_t rank = 0; rank < programs.size(); ++rank) {
    RankLaunch launch;
    launch.rank = static_cast<int>(rank);
    launch.placement = {fmt::format("node-{}", rank), "127.0.0.1", {}};
    launch.env = {{kProgramVariable, programs[rank]},
                  {"TP_TEST_WITNESS", fmt::format("{}/witness-0-{}", spec.paths.output_dir, rank)}};
    spec.ranks.push_back(std::move(launch));
  }
  world_->Place(spec);
  return WithNonce(std::move(spec), nonce);
}

LaunchSpec Conformance::WithNonce(LaunchSpec spec, const std::string& nonce) {
  spec.nonce = nonce;
  for (RankLaunch& rank : spec.ranks) rank.env[kNonceVariable] = nonce;
  return spec;
}

AttemptTarget Conformance::TargetOf(const LaunchSpec& spec) {
  AttemptTarget target{spec.key, spec.nonce, spec.paths.attempt_dir, {static_cast<int>(spec.ranks.size())}};
  for (const RankLaunch& rank : spec.ranks) target.hosts.push_back({rank.placement.node, rank.placement.address});
  return target;
}

void Conformance::LaunchAccepted(const LaunchSpec& spec) {
  const LaunchResult result = backend().Launch(spec, Soon());
  ASSERT_TRUE(std::holds_alternative<tp::LaunchAccepted>(result)) << WordsOf(result);
}

Observation Conformance::ObserveOne(const LaunchSpec& spec) {
  std::vector<Observation> seen = backend().Observe({TargetOf(spec)}, Soon());
  EXPECT_EQ(seen.size(), 1u);
  return seen.empty() ? Observation(Unknown{"no answer"}) : std::move(seen[0]);
}

Present Conformance::Await(const LaunchSpec& spec, const std::function<bool(const Present&)>& done) {
  const absl::Time limit = Soon();
  std::string why;
  while (absl::Now() < limit) {
    const Observation seen = ObserveOne(spec);
    if (const Present* present = std::get_if<Present>(&seen); present != nullptr && done(*present)) return *present;
    why = WhyUnknown(seen);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  ADD_FAILURE() << spec.key << ": what was awaited did not come; last seen: " << why;
  Present nothing;
  nothing.ranks.resize(spec.ranks.size());
  return nothing;
}

Present Conformance::AwaitStarted(const LaunchSpec& spec) {
  return Await(spec, [](const Present& present) {
    for (const RankObservation& rank : present.ranks) {
      if (!rank.started) return false;
    }
    return true;
  });
}

Present Conformance::AwaitFreed(const LaunchSpec& spec) {
  return Await(spec, [](const Present& present) { return present.freed; });
}

EndRecord Conformance::RunToEnd(const LaunchSpec& spec) {
  LaunchAccepted(spec);
  const Present present = AwaitFreed(spec);
  if (present.ranks.empty() || !present.ranks[0].ended) {
    ADD_FAILURE() << spec.key << ": no end record";
    return {};
  }
  EXPECT_EQ(world().ProcessesLeft(spec), 0);
  return *present.ranks[0].ended;
}

// --- Launch -----------------------------------------------------------------------------------------

TEST_P(Conformance, RunsEveryRankAndSeesItsRecords) {
  const LaunchSpec spec = Spec({"exit 0", "exit 0"});
  LaunchAccepted(spec);
  const Present present = AwaitFreed(spec);
  EXPECT_EQ(present.phase, EnginePhase::kEnded);
  EXPECT_EQ(present.claim, Claim::kThisLaunch);
  ASSERT_EQ(present.ranks.size(), 2u);
  for (int i = 0; i < 2; ++i) {
    const RankObservation& rank = present.ranks[static_cast<size_t>(i)];
    EXPECT_EQ(rank.rank, i);
    EXPECT_EQ(rank.tree, Tree::kGone);
    ASSERT_TRUE(rank.started && rank.ended);
    EXPECT_EQ(rank.started->nonce, spec.nonce);
    EXPECT_GE(rank.ended->at.boot_us, rank.started->at.boot_us);
    EXPECT_EQ(rank.ended->at.boot_id, rank.started->at.boot_id);
    EXPECT_TRUE(rank.ended->clean());
    EXPECT_FALSE(rank.ended->signalled());
    EXPECT_EQ(world().NoncesThatRan(spec, 0, i), std::vector<std::string>{spec.nonce});
  }
}

TEST_P(Conformance, ARunningAttemptIsActiveAndNotFreed) {
  const LaunchSpec spec = Spec({"hold", "hold"});
  LaunchAccepted(spec);
  const Present present = AwaitStarted(spec);
  EXPECT_EQ(present.phase, EnginePhase::kActive);
  EXPECT_TRUE(present.cards_granted);
  EXPECT_FALSE(present.freed);
  for (const RankObservation& rank : present.ranks) EXPECT_EQ(rank.tree, Tree::kAlive);
  Await(spec, [](const Present& seen) { return seen.ranks[0].heartbeat.has_value(); });
}

TEST_P(Conformance, TwoLaunchesAtOnceRunExactlyOneNonceOnEveryRank) {
  for (int round = 0; round < 5; ++round) {
    const LaunchSpec first = Spec({"exit 0", "exit 0", "exit 0"});
    const LaunchSpec second = WithNonce(first, "nonce-2");
    LaunchResult of_second;
    std::thread other([&] { of_second = backend().Launch(second, Soon()); });
    const LaunchResult of_first = backend().Launch(first, Soon());
    other.join();
    SCOPED_TRACE(fmt::format("first {}; second {}", WordsOf(of_first), WordsOf(of_second)));
    const Present present = AwaitFreed(first);
    const std::string owner = present.claim == Claim::kThisLaunch ? first.nonce : second.nonce;
    for (int rank = 0; rank < 3; ++rank) {
      EXPECT_EQ(world().NoncesThatRan(first, 0, rank), std::vector<std::string>{owner}) << "round " << round;
      ASSERT_TRUE(present.ranks[static_cast<size_t>(rank)].ended);
      EXPECT_EQ(present.ranks[static_cast<size_t>(rank)].ended.value().nonce, owner);
    }
    const Observation other_side = ObserveOne(second);
    ASSERT_TRUE(std::holds_alternative<Present>(other_side));
    EXPECT_NE(std::get<Present>(other_side).claim, present.claim);
  }
}

TEST_P(Conformance, ALaterLaunchOfARunningAttemptTouchesNothing) {
  const LaunchSpec first = Spec({"hold"});
  LaunchAccepted(first);
  AwaitStarted(first);
  const LaunchSpec second = WithNonce(first, "nonce-2");
  backend().Launch(second, Soon());
  const Present present = Await(second, [](const Present& seen) { return seen.claim == Claim::kOtherLaunch; });
  EXPECT_FALSE(present.freed);
  // The start record is no promise that the program has come to its first line.
  const absl::Time soon = Soon();
  while (world().NoncesThatRan(first, 0, 0).empty() && absl::Now() < soon) absl::SleepFor(absl::Milliseconds(2));
  EXPECT_EQ(world().NoncesThatRan(first, 0, 0), std::vector<std::string>{first.nonce});
}

TEST_P(Conformance, ACrashBetweenLaunchAndItsAnswerLosesNothing) {
  const LaunchSpec spec = Spec({"hold", "hold"});
  backend().Launch(spec, Soon());
  world().RestartBackend();
  const Present present = AwaitStarted(spec);
  EXPECT_EQ(present.claim, Claim::kThisLaunch);
  EXPECT_FALSE(present.freed);
  ASSERT_EQ(backend().Stop(TargetOf(spec), StopLevel::kKill, Soon()), absl::OkStatus());
  AwaitFreed(spec);
}

TEST_P(Conformance, AnEndDuringAnOutageOfTpdIsSeenAfterwards) {
  const LaunchSpec spec = Spec({"exit 3"});
  LaunchAccepted(spec);
  AwaitFreed(spec);
  world().RestartBackend();
  const Present present = AwaitFreed(spec);
  ASSERT_TRUE(present.ranks[0].ended);
  EXPECT_EQ(present.ranks[0].ended.value().code, 3);
}

TEST_P(Conformance, AnAttemptThatWasNeverLaunchedIsAbsent) {
  const Observation seen = ObserveOne(Spec({"exit 0", "exit 0"}));
  ASSERT_TRUE(std::holds_alternative<Absent>(seen)) << WhyUnknown(seen);
  EXPECT_EQ(std::get<Absent>(seen).claim, Claim::kNone);
}

TEST_P(Conformance, RefusesWhatCanNeverRun) {
  LaunchSpec spec = Spec({"exit 0"});
  spec.argv.clear();
  EXPECT_EQ(backend().Validate(spec).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(std::holds_alternative<LaunchRejected>(backend().Launch(spec, Soon())));
  EXPECT_TRUE(std::holds_alternative<Absent>(ObserveOne(spec)));
}

TEST_P(Conformance, RendersTheSameSpecToTheSameText) {
  const LaunchSpec spec = Spec({"exit 0", "hold"});
  EXPECT_FALSE(backend().Render(spec).empty());
  EXPECT_EQ(backend().Render(spec), backend().Render(spec));
}

TEST_P(Conformance, HostilePathsAreOnlyPaths) {
  LaunchSpec spec = Spec({"exit 0"});
  const std::string hostile = "hetjob $(x) 'a\"b\\ \xc3\xbc;&-";
  for (std::string* path : {&spec.paths.attempt_dir, &spec.paths.work_dir, &spec.paths.output_dir,
                            &spec.paths.results_dir, &spec.ranks[0].env["TP_TEST_WITNESS"]}) {
    path->replace(path->find(spec.run_id), spec.run_id.size(), hostile);
  }
  const EndRecord record = RunToEnd(spec);
  EXPECT_TRUE(record.clean());
  EXPECT_EQ(world().NoncesThatRan(spec, 0, 0), std::vector<std::string>{spec.nonce});
}

TEST_P(Conformance, ArgumentsAndEnvironmentPassUnchanged) {
  LaunchSpec spec = Spec({"exit 0"});
  const std::string hostile = "a b'\"$(touch /tmp/x)`;hetjob\n\t\\ \xc3\xbc \xff =";
  spec.ranks[0].env["HOSTILE"] = hostile;
  spec.ranks[0].env["EMPTY"] = "";
  spec.run_id = "hetjob-1";
  LaunchAccepted(spec);
  EXPECT_EQ(world().EnvSeen(spec, 0, 0, "HOSTILE"), hostile);
  AwaitFreed(spec);
}

// --- Ends -------------------------------------------------------------------------------------------

TEST_P(Conformance, TellsExitCodesFromSignals) {
  for (const int code : {0, 1, 137, 255}) {
    const EndRecord record = RunToEnd(Spec({fmt::format("exit {}", code)}));
    EXPECT_EQ(record.exit, ExitKind::kExited);
    EXPECT_EQ(record.code, code);
    EXPECT_FALSE(record.signalled());
  }
  for (const int signal : {SIGKILL, SIGSEGV}) {
    const EndRecord record = RunToEnd(Spec({fmt::format("raise {}", signal)}));
    EXPECT_EQ(record.exit, ExitKind::kKilled);
    EXPECT_EQ(record.term_signal, signal);
    EXPECT_FALSE(record.signalled()) << "nobody but the job itself sent it";
  }
}

TEST_P(Conformance, ACommandThatCannotBeExecutedSaysWhy) {
  LaunchSpec spec = Spec({"exit 0"});
  spec.argv = {"/no/such/command"};
  const EndRecord record = RunToEnd(spec);
  EXPECT_EQ(record.exit, ExitKind::kNotStarted);
  EXPECT_EQ(record.start_error, "ENOENT");
  EXPECT_FALSE(record.clean());
}

TEST_P(Conformance, OneOfSeveralRanksFailsAndTheOthersGoOnUntilTheyAreStopped) {
  const LaunchSpec spec = Spec({"hold", "exit 3", "hold"});
  LaunchAccepted(spec);
  const Present failed = Await(spec, [](const Present& present) { return present.ranks[1].ended.has_value(); });
  EXPECT_EQ(failed.ranks[1].ended.value().code, 3);
  EXPECT_FALSE(failed.freed);
  world().AwaitReady(spec, 0, 0);
  world().AwaitReady(spec, 0, 2);
  ASSERT_EQ(backend().Stop(TargetOf(spec), StopLevel::kTerm, Soon()), absl::OkStatus());
  const Present freed = AwaitFreed(spec);
  EXPECT_FALSE(freed.ranks[1].ended.value().signalled());
  for (const size_t rank : {0u, 2u}) {
    ASSERT_TRUE(freed.ranks[rank].ended);
    EXPECT_EQ(freed.ranks[rank].ended.value().signalled_by, SignalledBy::kTpd);
  }
}

TEST_P(Conformance, TermFromOutsideIsToldApartEvenWhenTheJobExitsZero) {
  const LaunchSpec spec = Spec({"trap 0"});
  LaunchAccepted(spec);
  AwaitStarted(spec);
  world().AwaitReady(spec, 0, 0);
  world().TermFromOutside(spec, 0, 0);
  const Present present = AwaitFreed(spec);
  ASSERT_TRUE(present.ranks[0].ended);
  EXPECT_TRUE(present.ranks[0].ended.value().clean());
  EXPECT_EQ(present.ranks[0].ended.value().signalled_by, SignalledBy::kOther);
}

TEST_P(Conformance, AKilledRunnerTakesItsTreeAlongAndLeavesNoRecord) {
  const LaunchSpec spec = Spec({"hold", "hold"});
  LaunchAccepted(spec);
  AwaitStarted(spec);
  world().AwaitReady(spec, 0, 0);
  world().KillRunner(spec, 0, 0);
  const Present present = Await(spec, [](const Present& seen) { return seen.ranks[0].tree == Tree::kGone; });
  EXPECT_FALSE(present.ranks[0].ended);
  EXPECT_TRUE(present.ranks[0].started);
  EXPECT_FALSE(present.freed) << "the other rank is alive";
  ASSERT_EQ(backend().Stop(TargetOf(spec), StopLevel::kKill, Soon()), absl::OkStatus());
  AwaitFreed(spec);
  EXPECT_EQ(world().ProcessesLeft(spec), 0);
}

TEST_P(Conformance, ARunnerKilledWhileTpdIsAwayIsFoundAfterwards) {
  const LaunchSpec spec = Spec({"hold"});
  LaunchAccepted(spec);
  AwaitStarted(spec);
  world().AwaitReady(spec, 0, 0);
  world().KillRunner(spec, 0, 0);
  world().RestartBackend();
  const Present present = AwaitFreed(spec);
  EXPECT_FALSE(present.ranks[0].ended);
  EXPECT_EQ(world().ProcessesLeft(spec), 0);
}

// --- Stop -------------------------------------------------------------------------------------------

TEST_P(Conformance, StoppingTheUnknownIsDone) {
  const AttemptTarget target = TargetOf(Spec({"hold"}));
  for (const StopLevel level : {StopLevel::kWarn, StopLevel::kTerm, StopLevel::kKill}) {
    EXPECT_EQ(backend().Stop(target, level, Soon()), absl::OkStatus());
  }
  EXPECT_EQ(backend().Remove(target, Soon()), absl::OkStatus());
}

TEST_P(Conformance, TermEndsARankAndIsRecordedAsTpds) {
  const LaunchSpec spec = Spec({"trap 7"});
  LaunchAccepted(spec);
  AwaitStarted(spec);
  world().AwaitReady(spec, 0, 0);
  ASSERT_EQ(backend().Stop(TargetOf(spec), StopLevel::kTerm, Soon()), absl::OkStatus());
  const Present present = AwaitFreed(spec);
  ASSERT_TRUE(present.ranks[0].ended);
  EXPECT_EQ(present.ranks[0].ended.value().code, 7);
  EXPECT_EQ(present.ranks[0].ended.value().signalled_by, SignalledBy::kTpd);
  EXPECT_EQ(world().ProcessesLeft(spec), 0);
}

TEST_P(Conformance, KillEndsEveryProcess) {
  const LaunchSpec spec = Spec({"hold", "hold"});
  LaunchAccepted(spec);
  AwaitStarted(spec);
  world().AwaitReady(spec, 0, 1);
  ASSERT_EQ(backend().Stop(TargetOf(spec), StopLevel::kKill, Soon()), absl::OkStatus());
  const Present present = AwaitFreed(spec);
  EXPECT_EQ(present.phase, EnginePhase::kEnded);
  EXPECT_EQ(world().ProcessesLeft(spec), 0);
}

TEST_P(Conformance, StoppingTwiceAndAfterTheEndIsDone) {
  const LaunchSpec spec = Spec({"hold"});
  LaunchAccepted(spec);
  AwaitStarted(spec);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(backend().Stop(TargetOf(spec), StopLevel::kTerm, Soon()), absl::OkStatus());
  const Present before = AwaitFreed(spec);
  EXPECT_EQ(backend().Stop(TargetOf(spec), StopLevel::kTerm, Soon()), absl::OkStatus());
  EXPECT_EQ(backend().Stop(TargetOf(spec), StopLevel::kKill, Soon()), absl::OkStatus());
  EXPECT_EQ(AwaitFreed(spec).ranks[0].ended, before.ranks[0].ended);
}

TEST_P(Conformance, AKillBeforeAnyRankStartedKeepsThemFromStarting) {
  for (int round = 0; round < 5; ++round) {
    const LaunchSpec spec = Spec({"hold", "hold", "hold"});
    LaunchAccepted(spec);
    ASSERT_EQ(backend().Stop(TargetOf(spec), StopLevel::kKill, Soon()), absl::OkStatus());
    // A rank between its claim and its look at the fence may have missed the first order.
    Await(spec, [&](const Present& present) {
      if (!present.freed) backend().Stop(TargetOf(spec), StopLevel::kKill, Soon()).IgnoreError();
      return present.freed;
    });
    EXPECT_EQ(world().ProcessesLeft(spec), 0);
  }
}

TEST_P(Conformance, AWarningAnnouncesThePauseAndEndsNothing) {
  const LaunchSpec spec = Spec({"trap 0"});
  LaunchAccepted(spec);
  AwaitStarted(spec);
  world().AwaitReady(spec, 0, 0);
  EXPECT_FALSE(world().PauseAnnounced(spec));
  ASSERT_EQ(backend().Stop(TargetOf(spec), StopLevel::kWarn, Soon()), absl::OkStatus());
  EXPECT_TRUE(world().PauseAnnounced(spec));
  EXPECT_FALSE(AwaitStarted(spec).freed);
  ASSERT_EQ(backend().Stop(TargetOf(spec), StopLevel::kTerm, Soon()), absl::OkStatus());
  EXPECT_EQ(AwaitFreed(spec).ranks[0].ended.value().signalled_by, SignalledBy::kTpd);
}

TEST_P(Conformance, RemoveIsIdempotentAndKeepsTheRecords) {
  const LaunchSpec spec = Spec({"exit 4"});
  RunToEnd(spec);
  EXPECT_EQ(backend().Remove(TargetOf(spec), Soon()), absl::OkStatus());
  EXPECT_EQ(backend().Remove(TargetOf(spec), Soon()), absl::OkStatus());
  EXPECT_EQ(AwaitFreed(spec).ranks[0].ended.value().code, 4);
}

// --- Fence ------------------------------------------------------------------------------------------

TEST_P(Conformance, AFencedAttemptNeverStarts) {
  const LaunchSpec spec = Spec({"exit 0", "exit 0"});
  ASSERT_TRUE(std::holds_alternative<FenceWon>(backend().Fence(TargetOf(spec), Soon())));
  EXPECT_FALSE(std::holds_alternative<tp::LaunchAccepted>(backend().Launch(spec, Soon())));
  const Present present = AwaitFreed(spec);
  EXPECT_EQ(present.claim, Claim::kFenced);
  EXPECT_EQ(present.phase, EnginePhase::kEnded);
  EXPECT_TRUE(world().NoncesThatRan(spec, 0, 0).empty());
  EXPECT_TRUE(std::holds_alternative<FenceWon>(backend().Fence(TargetOf(spec), Soon())));
}

TEST_P(Conformance, TheFenceIsLostToWhoeverClaimedFirst) {
  const LaunchSpec spec = Spec({"hold"});
  LaunchAccepted(spec);
  AwaitStarted(spec);
  const FenceResult result = backend().Fence(TargetOf(spec), Soon());
  ASSERT_TRUE(std::holds_alternative<FenceLost>(result));
  EXPECT_EQ(std::get<FenceLost>(result).owner_nonce, spec.nonce);
  EXPECT_FALSE(AwaitStarted(spec).freed);
}

TEST_P(Conformance, FenceAndLaunchAtOnceHaveOneWinner) {
  for (int round = 0; round < 5; ++round) {
    const LaunchSpec spec = Spec({"exit 0", "exit 0"});
    FenceResult fence;
    std::thread fencing([&] { fence = backend().Fence(TargetOf(spec), Soon()); });
    backend().Launch(spec, Soon());
    fencing.join();
    const Present present = AwaitFreed(spec);
    if (std::holds_alternative<FenceWon>(fence)) {
      EXPECT_EQ(present.claim, Claim::kFenced);
      for (const int rank : {0, 1}) EXPECT_TRUE(world().NoncesThatRan(spec, 0, rank).empty());
    } else {
      ASSERT_TRUE(std::holds_alternative<FenceLost>(fence));
      for (const int rank : {0, 1}) EXPECT_EQ(world().NoncesThatRan(spec, 0, rank).size(), 1u);
    }
  }
}

// --- Many, and trouble ------------------------------------------------------------------------------

TEST_P(Conformance, AThousandAttemptsAreObservedInOneCallAndInOrder) {
  std::vector<LaunchSpec> specs;
  for (int i = 0; i < 50; ++i) specs.push_back(Spec({fmt::format("exit {}", i)}));
  for (const LaunchSpec& spec : specs) LaunchAccepted(spec);
  while (specs.size() < 1000) specs.push_back(Spec({"exit 0"}));  // never launched
  for (int i = 0; i < 50; ++i) AwaitFreed(specs[static_cast<size_t>(i)]);
  std::vector<AttemptTarget> targets;
  for (const LaunchSpec& spec : specs) targets.push_back(TargetOf(spec));
  const std::vector<Observation> seen = backend().Observe(targets, Soon());
  ASSERT_EQ(seen.size(), 1000u);
  for (size_t i = 0; i < 50; ++i) {
    ASSERT_TRUE(std::holds_alternative<Present>(seen[i])) << i;
    ASSERT_TRUE(std::get<Present>(seen[i]).ranks[0].ended);
    EXPECT_EQ(std::get<Present>(seen[i]).ranks[0].ended.value().code, static_cast<int>(i));
  }
  for (size_t i = 50; i < 1000; ++i) ASSERT_TRUE(std::holds_alternative<Absent>(seen[i])) << i << WhyUnknown(seen[i]);
}

TEST_P(Conformance, UnreadableStorageIsUnknownAndChangesNothing) {
  const LaunchSpec running = Spec({"hold"});
  const LaunchSpec never_seen = Spec({"hold"});
  LaunchAccepted(running);
  AwaitStarted(running);
  world().BreakStorage();
  for (const LaunchSpec& spec : {running, never_seen}) {
    const Observation seen = ObserveOne(spec);
    ASSERT_TRUE(std::holds_alternative<Unknown>(seen)) << spec.key << ": alternative " << seen.index();
    EXPECT_FALSE(std::get<Unknown>(seen).why.empty());
  }
  world().HealStorage();
  EXPECT_FALSE(AwaitStarted(running).freed);
  EXPECT_TRUE(std::holds_alternative<Absent>(ObserveOne(never_seen)));
}

TEST_P(HungStorageConformance, AnAttemptWhoseStorageHangsHoldsUpNoOther) {
  const LaunchSpec hung = Spec({"hold"});
  const LaunchSpec other = Spec({"trap 7"});
  for (const LaunchSpec& spec : {hung, other}) {
    LaunchAccepted(spec);
    AwaitStarted(spec);
    world().AwaitReady(spec, 0, 0);
  }
  world().HangStorageOf(hung);
  Observation seen = Unknown{};
  std::thread looks([&] { seen = backend().Observe({TargetOf(hung)}, absl::Now() + absl::Seconds(2)).front(); });
  auto others = std::async(std::launch::async, [&] {
    ASSERT_EQ(backend().Stop(TargetOf(other), StopLevel::kTerm, Soon()), absl::OkStatus());
    const Present present = AwaitFreed(other);
    ASSERT_TRUE(present.ranks[0].ended);
    EXPECT_EQ(present.ranks[0].ended.value().code, 7);
    const LaunchSpec later = Spec({"exit 0"});
    EXPECT_TRUE(RunToEnd(later).clean());
  });
  const bool in_time = others.wait_for(absl::ToChronoMilliseconds(world().Patience())) == std::future_status::ready;
  EXPECT_TRUE(in_time) << "others wait for the storage of one";
  world().MendStorage();
  looks.join();
  others.get();
  EXPECT_FALSE(std::holds_alternative<Absent>(seen));
  const auto* present = std::get_if<Present>(&seen);
  EXPECT_FALSE(present != nullptr && present->freed);
  EXPECT_FALSE(AwaitStarted(hung).freed);
  EXPECT_EQ(world().NoncesThatRan(hung, 0, 0).size(), 1u);
  ASSERT_EQ(backend().Stop(TargetOf(hung), StopLevel::kKill, Soon()), absl::OkStatus());
  AwaitFreed(hung);
}

TEST_P(EngineConformance, WhatRunsWhileItsEngineIsAwayIsKnownAfterwards) {
  const LaunchSpec holds = Spec({"hold"});
  const LaunchSpec ends = Spec({"trap 7"});
  for (const LaunchSpec& spec : {holds, ends}) {
    LaunchAccepted(spec);
    AwaitStarted(spec);
    world().AwaitReady(spec, 0, 0);
  }
  world().CutEngine();
  for (const LaunchSpec& spec : {holds, ends}) {
    const Observation seen = ObserveOne(spec);
    ASSERT_TRUE(std::holds_alternative<Unknown>(seen)) << WhyUnknown(seen);
    EXPECT_FALSE(std::get<Unknown>(seen).why.empty());
  }
  EXPECT_FALSE(backend().Stop(TargetOf(holds), StopLevel::kTerm, Soon()).ok()) << "an order that nobody has taken";
  world().TermFromOutside(ends, 0, 0);
  world().RestartBackend();
  EXPECT_TRUE(std::holds_alternative<Unknown>(ObserveOne(holds)));
  world().MendEngine();
  const Present ended = AwaitFreed(ends);
  ASSERT_TRUE(ended.ranks[0].ended);
  EXPECT_EQ(ended.ranks[0].ended.value().code, 7);
  EXPECT_EQ(ended.ranks[0].ended.value().signalled_by, SignalledBy::kOther);
  EXPECT_FALSE(AwaitStarted(holds).freed) << "the order that failed came later";
  EXPECT_EQ(world().NoncesThatRan(holds, 0, 0).size(), 1u);
}

TEST_P(EngineConformance, ALaunchWhileTheEngineIsAwayHappensOnceOrNot) {
  const LaunchSpec spec = Spec({"hold"});
  world().CutEngine();
  LaunchResult last = backend().Launch(spec, absl::Now() + absl::Seconds(5));
  EXPECT_FALSE(std::holds_alternative<LaunchRejected>(last)) << WordsOf(last);
  if (std::holds_alternative<tp::LaunchAccepted>(last)) {  // a backend that has files to copy first
    Await(spec,
          [](const Present& present) { return present.phase == EnginePhase::kWaiting && !present.reason.empty(); });
  } else {
    EXPECT_FALSE(std::holds_alternative<Present>(ObserveOne(spec)));
  }
  world().MendEngine();
  for (const absl::Time patience = Soon(); absl::Now() < patience;) {
    if (std::holds_alternative<tp::LaunchAccepted>(last)) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    last = backend().Launch(spec, Soon());
  }
  AwaitStarted(spec);
  world().AwaitReady(spec, 0, 0);
  EXPECT_EQ(world().NoncesThatRan(spec, 0, 0).size(), 1u);
}

TEST_P(MemoryConformance, ARankThatTakesMoreThanItsMemoryIsOutOfMemory) {
  const auto with_memory = [this](int64_t bytes) {
    LaunchSpec spec = Spec({"eat"});
    spec.demands = {NodeDemand{.limits = {.cpus = {}, .memory_bytes = bytes, .shm_bytes = {}, .memlock_bytes = {}},
                               .constraint = {},
                               .node_selector = {}}};
    return spec;
  };
  const LaunchSpec greedy = with_memory(64 << 20);
  LaunchAccepted(greedy);
  const Present present = AwaitFreed(greedy);
  ASSERT_TRUE(present.ranks[0].ended);
  EXPECT_EQ(present.ranks[0].ended.value().exit, ExitKind::kKilled);
  EXPECT_TRUE(present.ranks[0].ended.value().oom_kills > 0 || present.engine_end == EngineEnd::kOutOfMemory);
  EXPECT_EQ(RunToEnd(with_memory(512 << 20)).code, 0);
}

TEST_P(Conformance, TheInventoryListsWhatIsAliveAndNothingElse) {
  const LaunchSpec alive = Spec({"hold"});
  const LaunchSpec over = Spec({"exit 0"});
  LaunchAccepted(alive);
  AwaitStarted(alive);
  RunToEnd(over);
  world().RestartBackend();
  const auto listed = [&] {
    std::set<std::string> keys;
    const auto items = backend().Inventory(Soon());
    EXPECT_TRUE(items.ok()) << items.status();
    if (items.ok()) {
      for (const InventoryItem& item : *items) keys.insert(item.key);
    }
    return keys;
  };
  // A runner is a process until it has left, which it does right after its end record.
  std::set<std::string> keys = listed();
  for (const absl::Time patience = Soon(); keys.contains(over.key) && absl::Now() < patience; keys = listed()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_TRUE(keys.contains(alive.key));
  EXPECT_FALSE(keys.contains(over.key));
}

}  // namespace tp::conformance
