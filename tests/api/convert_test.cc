#include "api/convert.h"

#include <gtest/gtest.h>

#include "core/reason.h"
#include "sample_runs.h"

namespace tp::api {
namespace {

using core::JobState;

const absl::Time kNow = absl::FromUnixSeconds(1'700'000'200);

v1::Run Shown(const core::RunWithSteps& run) {
  return ToProto(loop::LiveRun{.run = run, .gates = {}, .shapes = {}}, Environment::kShown, kNow);
}

TEST(Convert, ARunningRun) {
  const v1::Run run = Shown(RunningRun(42, "ana"));
  EXPECT_EQ(run.id(), "train-42");
  EXPECT_EQ(run.n(), 42);
  EXPECT_EQ(run.state(), v1::RUN_STATE_RUNNING);
  EXPECT_EQ(run.state_text(), "RUNNING");
  EXPECT_FALSE(run.has_ended_at());
  ASSERT_EQ(run.steps_size(), 1);
  const v1::Step& step = run.steps(0);
  EXPECT_EQ(step.index(), 1);
  EXPECT_EQ(step.shape(), "h200:16 = 2 nodes x 8");
  EXPECT_EQ(step.cards(), 16);
  EXPECT_EQ(step.nodes(), 2);
  EXPECT_EQ(step.backend(), "local");
  EXPECT_EQ(step.attempt().number(), 1);
  EXPECT_EQ(step.attempt().nodes_size(), 2);
}

TEST(Convert, ARunThatIsOver) {
  const v1::Run run = Shown(EndedRun(RunningRun(42, "ana"), JobState::kFailed));
  EXPECT_EQ(run.state(), v1::RUN_STATE_FAILED);
  EXPECT_EQ(run.reason(), "rank 0-0 exited with code 1: see tp logs");
  EXPECT_EQ(run.gpu_ms(), 16'000);
  EXPECT_EQ(FromProto(run.ended_at()), absl::FromUnixSeconds(1'700'000'100));
  EXPECT_EQ(run.steps(0).shape(), "h200:16 = 2 nodes x 8");
  EXPECT_EQ(run.steps(0).failure().kind(), "user_exit");
  EXPECT_EQ(run.steps(0).past_attempts(0).outcome(), v1::JOB_STATE_FAILED);
  EXPECT_FALSE(run.steps(0).has_attempt());
}

TEST(Convert, AQuarantineShowsInAnyState) {
  loop::LiveRun live{.run = RunningRun(1, "ana"), .gates = {}, .shapes = {}};
  live.gates = {{{core::GateKind::kHeld, "in quarantine", {}, {}}}};
  const v1::Run run = ToProto(live, Environment::kShown, kNow);
  EXPECT_EQ(run.state(), v1::RUN_STATE_RUNNING);
  EXPECT_EQ(run.reason(), "HELD: in quarantine");
  EXPECT_EQ(run.steps(0).gates_size(), 1);
}

TEST(Convert, GatesAreNamedWithTheirSentence) {
  loop::LiveRun live{.run = QueuedRun(1, "ana"), .gates = {}, .shapes = {}};
  live.gates = {{{core::GateKind::kCapacity, "h200 needs 2 nodes x 8 cards, 3 of 32 are free", {}, kNow},
                 {core::GateKind::kCooldown, "waits", kNow, {}}}};
  const v1::Run run = ToProto(live, Environment::kShown, kNow);
  EXPECT_EQ(run.reason(), "CAPACITY: h200 needs 2 nodes x 8 cards, 3 of 32 are free (and 1 more)");
  ASSERT_EQ(run.steps(0).gates_size(), 2);
  EXPECT_EQ(run.steps(0).gates(0).gate(), v1::GATE_CAPACITY);
  EXPECT_FALSE(run.steps(0).gates(0).has_opens_at());
  EXPECT_EQ(FromProto(run.steps(0).gates(0).since()), kNow);
  EXPECT_EQ(FromProto(run.steps(0).gates(1).opens_at()), kNow);
  EXPECT_FALSE(run.steps(0).gates(1).has_since());
}

TEST(Convert, ReasonIsNeverEmptyWhereTheUserWaitsOrLost) {
  for (const JobState state : {JobState::kQueued, JobState::kPending, JobState::kPaused, JobState::kFailed}) {
    core::Step step;
    step.state = state;
    EXPECT_FALSE(core::StepReason(step, {}).empty()) << core::Name(state);
  }
  core::Step paused;
  paused.state = JobState::kPaused;
  paused.pause = {.owner = true, .admin = true, .window = false};
  EXPECT_EQ(core::StepReason(paused, {}), "paused by its owner and an admin; tp resume continues it");
  core::Step pending = RunningRun(1, "ana").steps[0];
  pending.state = JobState::kPending;
  EXPECT_EQ(core::StepReason(pending, {}), "0 of 2 ranks have started on local");

  core::Step withdrawn = pending;
  withdrawn.attempt->ending.emplace().cause = core::EndCause::kRefused;
  withdrawn.backoff_reason = "cannot write work: No space left on device";
  for (const core::JobState state : {core::JobState::kSubmitted, core::JobState::kPending}) {
    withdrawn.state = state;
    EXPECT_EQ(core::StepReason(withdrawn, {}), withdrawn.backoff_reason);
  }
}

TEST(Convert, APipelineSpeaksThroughTheStepThatDecides) {
  core::RunWithSteps run = QueuedRun(1, "ana");
  core::Step second = run.steps[0];
  second.ref.step = 1;
  second.spec.name = "eval";
  second.spec.after = core::After{.step = 0, .when = core::AfterWhen::kSuccess};
  run.steps[0].state = JobState::kSucceeded;
  second.state = JobState::kFailed;
  second.failure = core::Failure{core::FailureKind::kUserExit, "eval broke"};
  run.steps.push_back(second);
  const v1::Run partial = Shown(run);
  EXPECT_EQ(partial.state(), v1::RUN_STATE_PARTIAL);
  EXPECT_EQ(partial.state_text(), "PARTIAL (eval, step 2 of 2)");
  EXPECT_EQ(partial.reason(), "eval broke");
  EXPECT_EQ(partial.steps(1).spec().after().step(), "main");
  EXPECT_EQ(partial.steps(1).spec().after().when(), v1::AFTER_WHEN_SUCCESS);
}

TEST(Convert, WhoIsToldIsForWhoMayReadTheEnvironment) {
  core::RunWithSteps run = QueuedRun(7, "ana");
  run.run.notify = {{"bob@example.org", {core::NoticeEvent::kFailed, core::NoticeEvent::kPaused}}};
  const v1::Run shown = Shown(run);
  ASSERT_EQ(shown.notify_size(), 1);
  EXPECT_EQ(shown.notify(0).to(), "bob@example.org");
  ASSERT_EQ(shown.notify(0).on_size(), 2);
  EXPECT_EQ(shown.notify(0).on(0), v1::NOTICE_EVENT_FAILED);
  EXPECT_EQ(shown.notify(0).on(1), v1::NOTICE_EVENT_PAUSED);
  const loop::LiveRun live{.run = run, .gates = {}, .shapes = {}};
  EXPECT_EQ(ToProto(live, Environment::kLeftOut, kNow).notify_size(), 0);
}

core::RunWithSteps Array() {
  core::RunWithSteps run = QueuedRun(7, "ana");
  run.run.array_limit = 2;
  run.run.after.push_back({.run = 3, .id = "train-3", .when = core::AfterWhen::kAlways, .outcome = {}});
  for (int32_t index = 0; index < 4; ++index) {
    if (index > 0) run.steps.push_back(run.steps[0]);
    run.steps.back().ref.step = index;
    run.steps.back().spec.array_index = 10 * index;
  }
  run.steps[0].state = JobState::kSucceeded;
  run.steps[1].state = JobState::kFailed;
  return run;
}

TEST(Convert, AnArrayIsCountedAndSaysItsCommandOnce) {
  const v1::Run run = Shown(Array());
  EXPECT_EQ(run.state_text(), "QUEUED (1 succeeded, 1 failed of 4 tasks)");
  EXPECT_EQ(run.array().tasks(), 4);
  EXPECT_EQ(run.array().limit(), 2);
  EXPECT_EQ(run.array().queued(), 2);
  EXPECT_EQ(run.array().succeeded(), 1);
  EXPECT_EQ(run.array().failed(), 1);
  ASSERT_EQ(run.steps_size(), 4);
  EXPECT_GT(run.steps(0).spec().argv_size(), 0);
  EXPECT_EQ(run.steps(3).spec().argv_size(), 0);
  EXPECT_EQ(run.steps(3).spec().array_index(), 30);
  ASSERT_EQ(run.after_size(), 1);
  EXPECT_EQ(run.after(0).run(), "train-3");
  EXPECT_EQ(run.after(0).when(), v1::AFTER_WHEN_ALWAYS);
  EXPECT_EQ(run.after(0).outcome(), v1::RUN_STATE_UNSPECIFIED);
}

TEST(Convert, InAListOneTaskSpeaksForTheArray) {
  const v1::Run run =
      ToProto(loop::LiveRun{.run = Array(), .gates = {}, .shapes = {}}, Environment::kShown, kNow, Tasks::kSpeaking);
  ASSERT_EQ(run.steps_size(), 1);
  EXPECT_EQ(run.steps(0).index(), 3);
  EXPECT_EQ(run.reason(), run.steps(0).reason());
  EXPECT_GT(run.steps(0).spec().argv_size(), 0);
}

TEST(Convert, EnvironmentIsMaskedAndLeftOut) {
  core::RunWithSteps run = QueuedRun(1, "ana");
  run.steps[0].spec.env = {{"LR", "0.1"}, {"HF_TOKEN", "hunter2"}, {"URL", "https://ana:hunter2@host/x"}};
  run.steps[0].spec.explicit_env = {{"wandb_api_key", "hunter2"}, {"TOKENIZERS_PARALLELISM", "true"}};
  const v1::Run shown = Shown(run);
  EXPECT_EQ(shown.steps(0).spec().env().at("LR"), "0.1");
  EXPECT_EQ(shown.steps(0).spec().explicit_env().at("TOKENIZERS_PARALLELISM"), "true");
  EXPECT_EQ(shown.SerializeAsString().find("hunter2"), std::string::npos);
  const v1::Run hidden = ToProto(loop::LiveRun{.run = run, .gates = {}, .shapes = {}}, Environment::kLeftOut, kNow);
  EXPECT_TRUE(hidden.steps(0).spec().env().empty());
  EXPECT_TRUE(hidden.steps(0).spec().explicit_env().empty());
}

TEST(Convert, TimesAndDurationsRoundTrip) {
  for (const absl::Time time : {absl::UnixEpoch(), kNow + absl::Nanoseconds(1), absl::FromUnixMicros(-1)}) {
    EXPECT_EQ(FromProto(ToProto(time)), time);
    EXPECT_GE(ToProto(time).nanos(), 0);
  }
  for (const absl::Duration duration : {absl::Seconds(90), absl::Milliseconds(1500), absl::Nanoseconds(-1)}) {
    EXPECT_EQ(FromProto(ToProto(duration)), duration);
  }
}

TEST(Convert, EveryStateHasItsProtoName) {
  for (int i = 0; i < core::kJobStateCount; ++i) {
    const auto state = static_cast<JobState>(i);
    EXPECT_EQ(v1::JobState_Name(ToProto(state)), "JOB_STATE_" + std::string(core::Name(state)));
  }
  for (int i = 0; i < core::kRunWordCount; ++i) {
    const auto word = static_cast<core::RunWord>(i);
    EXPECT_EQ(v1::RunState_Name(ToProto(word)), "RUN_STATE_" + std::string(core::Name(word)));
    EXPECT_EQ(FromProto(ToProto(word)), word);
  }
  for (int i = 0; i < core::kGateKindCount; ++i) {
    const auto gate = static_cast<core::GateKind>(i);
    EXPECT_EQ(v1::Gate_Name(ToProto(gate)), "GATE_" + std::string(core::Name(gate)));
  }
  EXPECT_FALSE(FromProto(v1::RUN_STATE_UNSPECIFIED).has_value());
  EXPECT_FALSE(FromProto(static_cast<v1::RunState>(99)).has_value());
}

}  // namespace
}  // namespace tp::api
