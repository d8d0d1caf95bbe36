#include "api/convert.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/secret_names.h"
#include "core/array.h"
#include "core/card_health.h"
#include "core/reason.h"
#include "core/resource.h"
#include "core/revision.h"

namespace tp::api {
namespace {

// Proto enumerations are the core's, shifted by UNSPECIFIED.
static_assert(static_cast<int>(core::JobState::kStopped) + 1 == v1::JOB_STATE_STOPPED);
static_assert(static_cast<int>(core::RunWord::kPartial) + 1 == v1::RUN_STATE_PARTIAL);
static_assert(static_cast<int>(core::GateKind::kBackend) + 1 == v1::GATE_BACKEND);
static_assert(static_cast<int>(core::AfterWhen::kAlways) + 1 == v1::AFTER_WHEN_ALWAYS);
static_assert(static_cast<int>(core::NoticeEvent::kIdle) + 1 == v1::NOTICE_EVENT_IDLE);
static_assert(static_cast<int>(store::UsageKey::kRun) + 1 == v1::USAGE_KEY_RUN);

using ProtoEnv = google::protobuf::Map<std::string, std::string>;

void CopyEnv(const std::map<std::string, std::string>& from, ProtoEnv* to) {
  for (const auto& [name, value] : from) (*to)[name] = LooksSecret(name, value) ? std::string(kMaskedValue) : value;
}

void CopyAfter(const core::After& after, const core::RunWithSteps& run, v1::After* to) {
  to->set_step(run.steps[static_cast<size_t>(after.step)].spec.name);
  to->set_when(static_cast<v1::AfterWhen>(static_cast<int>(after.when) + 1));
}

void CopySpec(const core::StepSpec& spec, const core::RunWithSteps& run, Environment environment, v1::StepSpec* to) {
  to->set_name(spec.name);
  to->mutable_argv()->Assign(spec.argv.begin(), spec.argv.end());
  to->mutable_profiles()->Assign(spec.profiles.begin(), spec.profiles.end());
  if (environment == Environment::kShown) {
    CopyEnv(spec.env, to->mutable_env());
    CopyEnv(spec.explicit_env, to->mutable_explicit_env());
  }
  to->set_image(spec.image);
  if (spec.after) CopyAfter(*spec.after, run, to->mutable_after());
  if (spec.time_limit) *to->mutable_time_limit() = ToProto(*spec.time_limit);
  if (spec.start_timeout) *to->mutable_start_timeout() = ToProto(*spec.start_timeout);
  if (spec.pending_timeout) *to->mutable_pending_timeout() = ToProto(*spec.pending_timeout);
  if (spec.user_retries) to->set_user_retries(*spec.user_retries);
  if (spec.infrastructure_retries) to->set_infrastructure_retries(*spec.infrastructure_retries);
  if (spec.array_index) to->set_array_index(*spec.array_index);
}

void CopyFailure(const core::Failure& failure, v1::Failure* to) {
  to->set_kind(std::string(core::Name(failure.kind)));
  to->set_sentence(failure.sentence);
}

void CopyLiveAttempt(const core::Attempt& attempt, v1::Attempt* to) {
  to->set_number(attempt.number);
  *to->mutable_created_at() = ToProto(attempt.created_at);
  for (const PoolPlacement& pool : attempt.placement) {
    for (const RankPlacement& rank : pool.ranks) to->add_nodes(rank.node);
  }
  to->set_cards(attempt.cards());
  to->set_backend(attempt.shape.backend);
  if (attempt.meter && attempt.meter->closed_unix_us) to->set_metered_ms(core::MeteredMs(*attempt.meter));
}

void CopyPastAttempt(const core::PastAttempt& attempt, v1::Attempt* to) {
  to->set_number(attempt.number);
  *to->mutable_created_at() = ToProto(attempt.created_at);
  *to->mutable_ended_at() = ToProto(attempt.ended_at);
  to->set_outcome(ToProto(attempt.outcome));
  if (attempt.failure) CopyFailure(*attempt.failure, to->mutable_failure());
  to->set_exit(attempt.exit);
  to->set_backend(attempt.backend);
  to->mutable_nodes()->Assign(attempt.nodes.begin(), attempt.nodes.end());
  to->set_cards(attempt.cards);
  to->set_metered_ms(attempt.metered_ms);
}

void CopyShape(const core::ResolvedShape& shape, v1::Step* to) {
  to->set_shape(core::DescribeShape(shape));
  to->set_backend(shape.backend);
  to->set_cards(shape.cards());
  int64_t nodes = 0;
  for (const core::PoolShape& pool : shape.pools) nodes += pool.nodes;
  to->set_nodes(static_cast<int32_t>(nodes));
}

// Of a step that is over only what its last attempt had is kept.
void CopyPastShape(const core::Step& step, v1::Step* to) {
  if (step.past.empty()) return;
  const core::PastAttempt& last = step.past.back();
  const auto nodes = static_cast<int64_t>(last.nodes.size());
  to->set_backend(last.backend);
  to->set_cards(last.cards);
  to->set_nodes(static_cast<int32_t>(nodes));
  if (nodes == 0) return;
  const std::string flags = step.spec.profiles.empty() ? "cpu" : fmt::format("{}", fmt::join(step.spec.profiles, " "));
  const std::string size = last.cards > 0 && last.cards % nodes == 0 ? fmt::format(" x {}", last.cards / nodes) : "";
  to->set_shape(fmt::format("{} = {} node{}{}", flags, nodes, nodes == 1 ? "" : "s", size));
}

const core::ResolvedShape* ShapeOf(const loop::LiveRun& run, size_t index) {
  const core::Step& step = run.run.steps[index];
  if (step.attempt) return &step.attempt->shape;
  return index < run.shapes.size() && !run.shapes[index].pools.empty() ? &run.shapes[index] : nullptr;
}

void CopyCheckpoint(const core::CheckpointSight& sight, const core::Step& step, absl::Time now, v1::Step* to) {
  const auto span = core::SpanOf(step, now);
  if (!span) return;
  v1::Checkpoint* checkpoint = to->mutable_checkpoint();
  *checkpoint->mutable_looked_at() = ToProto(sight.looked_at);
  *checkpoint->mutable_at_risk() = ToProto(core::WorkAtRisk(sight, *span));
  if (!sight.newest) return;
  checkpoint->set_path(sight.newest->path);
  *checkpoint->mutable_written_at() = ToProto(sight.newest->written_at);
}

void CopyStep(const loop::LiveRun& run, size_t index, Environment environment, absl::Time now, v1::Step* to) {
  const core::Step& step = run.run.steps[index];
  static const std::vector<core::GateVerdict> kNoGates;
  const auto& gates = index < run.gates.size() ? run.gates[index] : kNoGates;
  to->set_index(step.ref.step + 1);
  CopySpec(step.spec, run.run, environment, to->mutable_spec());
  to->set_state(ToProto(step.state));
  to->set_state_text(core::StateText(step, now));
  *to->mutable_entered_at() = ToProto(step.entered_at);
  to->set_reason(core::StepReason(step, gates));
  const bool idle = index < run.idle_since.size() && run.idle_since[index] && step.attempt;
  if (idle) to->set_reason(core::IdleSentence(step.attempt->cards(), now - *run.idle_since[index]));
  for (const core::GateVerdict& verdict : gates) *to->add_gates() = ToProto(verdict);
  if (const core::ResolvedShape* shape = ShapeOf(run, index)) {
    CopyShape(*shape, to);
  } else {
    CopyPastShape(step, to);
  }
  to->set_retry_count(step.retry_count);
  to->set_held_by_owner(step.hold.owner);
  to->set_held_by_admin(step.hold.admin);
  if (step.failure) CopyFailure(*step.failure, to->mutable_failure());
  to->set_exit(step.exit);
  if (index < run.checkpoints.size() && run.checkpoints[index]) CopyCheckpoint(*run.checkpoints[index], step, now, to);
  if (step.attempt) CopyLiveAttempt(*step.attempt, to->mutable_attempt());
  for (const core::PastAttempt& attempt : step.past) CopyPastAttempt(attempt, to->add_past_attempts());
}

int64_t SettledGpuMs(const core::RunWithSteps& run) {
  int64_t sum = 0;
  for (const core::Step& step : run.steps) {
    for (const core::PastAttempt& attempt : step.past) sum += attempt.metered_ms * attempt.cards;
  }
  return sum;
}

void CountTasks(const core::RunWithSteps& run, v1::ArrayStatus* to) {
  to->set_tasks(static_cast<int32_t>(run.steps.size()));
  to->set_limit(run.run.array_limit);
  for (const core::Step& step : run.steps) {
    switch (step.state) {
      case core::JobState::kQueued:
        to->set_queued(to->queued() + 1);
        break;
      case core::JobState::kSubmitted:
      case core::JobState::kPending:
        to->set_starting(to->starting() + 1);
        break;
      case core::JobState::kRunning:
        to->set_running(to->running() + 1);
        break;
      case core::JobState::kPaused:
        to->set_paused(to->paused() + 1);
        break;
      case core::JobState::kSucceeded:
        to->set_succeeded(to->succeeded() + 1);
        break;
      case core::JobState::kFailed:
        to->set_failed(to->failed() + 1);
        break;
      case core::JobState::kStopped:
        to->set_stopped(to->stopped() + 1);
        break;
    }
  }
}

// `16 running, 200 succeeded of 1000`
std::string TaskCounts(const core::RunWithSteps& run) {
  v1::ArrayStatus counts;
  CountTasks(run, &counts);
  std::string text;
  const auto add = [&text](int32_t count, std::string_view what) {
    if (count > 0) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, what);
  };
  add(counts.running(), "running");
  add(counts.starting(), "starting");
  add(counts.paused(), "paused");
  add(counts.succeeded(), "succeeded");
  add(counts.failed(), "failed");
  add(counts.stopped(), "stopped");
  return fmt::format("{}{}of {} tasks", text, text.empty() ? "" : " ", counts.tasks());
}

// The run's word; where one step speaks for it, as that step's state reads.
std::string RunStateText(const core::RunWithSteps& run, core::RunWord word, absl::Time now) {
  if (core::IsArray(run)) return fmt::format("{} ({})", core::Name(word), TaskCounts(run));
  const core::Step& step = core::SpeakingStep(run.steps);
  std::string text =
      core::Name(step.state) == core::Name(word) ? core::StateText(step, now) : std::string(core::Name(word));
  if (run.steps.size() > 1)
    text += fmt::format(" ({}, step {} of {})", step.spec.name, step.ref.step + 1, run.steps.size());
  return text;
}

void CopyDependency(const core::RunDependency& from, v1::RunDependency* to) {
  to->set_run(from.id);
  to->set_when(static_cast<v1::AfterWhen>(static_cast<int>(from.when) + 1));
  if (from.outcome) to->set_outcome(ToProto(*from.outcome));
}

void CopyNotice(const core::Notice& from, v1::Notice* to) {
  to->set_to(from.to);
  for (const core::NoticeEvent event : from.on) to->add_on(ToProto(event));
}

// The same for all tasks of an array.
void LeaveOutCommand(v1::StepSpec* spec) {
  spec->clear_argv();
  spec->clear_env();
  spec->clear_explicit_env();
}

std::optional<absl::Time> EndedAt(const core::RunWithSteps& run, core::RunWord word) {
  if (!core::IsTerminal(word)) return std::nullopt;
  absl::Time ended = absl::InfinitePast();
  for (const core::Step& step : run.steps) ended = std::max(ended, step.entered_at);
  return ended;
}

}  // namespace

v1::Run ToProto(const loop::LiveRun& live, Environment environment, absl::Time now, Tasks tasks) {
  const core::RunWithSteps& run = live.run;
  const core::RunWord word = core::RollUp(run.steps);
  v1::Run to;
  to.set_n(run.run.n);
  to.set_id(run.run.id());
  to.set_owner(run.run.owner);
  to.set_project(run.run.project);
  to.set_state(ToProto(word));
  to.set_state_text(RunStateText(run, word, now));
  *to.mutable_created_at() = ToProto(run.run.created_at);
  to.mutable_labels()->insert(run.run.labels.begin(), run.run.labels.end());
  to.set_snapshot_id(run.run.snapshot_id);
  to.set_priority(run.run.priority);
  to.set_version(core::VersionOf(run));
  if (run.run.removed_at) *to.mutable_removed_at() = ToProto(*run.run.removed_at);
  for (const core::RunDependency& other : run.run.after) CopyDependency(other, to.add_after());
  if (environment == Environment::kShown) {
    for (const core::Notice& notice : run.run.notify) CopyNotice(notice, to.add_notify());
  }
  if (core::IsArray(run)) CountTasks(run, to.mutable_array());
  const core::Step& speaking = core::SpeakingStep(run.steps);
  for (const core::Step& step : run.steps) {
    to.set_retry_count(to.retry_count() + step.retry_count);
    if (tasks == Tasks::kSpeaking && core::IsArray(run) && step.ref != speaking.ref) continue;
    CopyStep(live, static_cast<size_t>(step.ref.step), environment, now, to.add_steps());
    if (step.ref == speaking.ref) to.set_reason(to.steps().rbegin()->reason());
    if (core::IsArray(run) && to.steps_size() > 1) LeaveOutCommand(to.mutable_steps()->rbegin()->mutable_spec());
  }
  to.set_gpu_ms(SettledGpuMs(run));
  if (const auto ended = EndedAt(run, word)) *to.mutable_ended_at() = ToProto(*ended);
  return to;
}

v1::GateVerdict ToProto(const core::GateVerdict& verdict) {
  v1::GateVerdict to;
  to.set_gate(ToProto(verdict.gate));
  to.set_sentence(verdict.sentence);
  if (verdict.opens_at) *to.mutable_opens_at() = ToProto(*verdict.opens_at);
  if (verdict.since) *to.mutable_since() = ToProto(*verdict.since);
  return to;
}

v1::Event ToProto(const store::EventRow& row) {
  v1::Event to;
  to.set_revision(row.revision);
  *to.mutable_at() = ToProto(row.at);
  to.set_run(row.run);
  to.set_step(row.step + 1);
  to.set_attempt(row.attempt);
  to.set_event(row.event);
  to.set_from(ToProto(row.from));
  to.set_to(ToProto(row.to));
  to.set_note(row.note);
  return to;
}

v1::Interval ToProto(const core::LedgerRow& row, const std::string& run_id) {
  v1::Interval to;
  to.set_seq(row.seq);
  to.set_run(run_id);
  to.set_step(row.step + 1);
  to.set_attempt(row.attempt);
  to.set_pool(row.pool);
  to.set_series(row.series);
  to.set_profile(row.profile);
  to.set_owner(row.owner);
  to.set_project(row.project);
  to.set_cards(row.cards);
  *to.mutable_start() = ToProto(absl::FromUnixMillis(row.start_unix_ms));
  *to.mutable_end() = ToProto(absl::FromUnixMillis(row.end_unix_ms));
  to.set_gpu_ms(row.gpu_ms);
  to.set_flagged(row.flagged);
  to.set_evidence(row.evidence);
  to.set_month(row.month);
  to.set_delta(row.delta);
  to.set_hash(row.hash);
  to.set_previous_hash(row.previous_hash);
  return to;
}

v1::JobState ToProto(core::JobState state) { return static_cast<v1::JobState>(static_cast<int>(state) + 1); }
v1::RunState ToProto(core::RunWord word) { return static_cast<v1::RunState>(static_cast<int>(word) + 1); }
v1::Gate ToProto(core::GateKind gate) { return static_cast<v1::Gate>(static_cast<int>(gate) + 1); }

v1::NoticeEvent ToProto(core::NoticeEvent event) { return static_cast<v1::NoticeEvent>(static_cast<int>(event) + 1); }

std::optional<core::NoticeEvent> FromProto(v1::NoticeEvent event) {
  if (event == v1::NOTICE_EVENT_UNSPECIFIED || !v1::NoticeEvent_IsValid(event)) return std::nullopt;
  return static_cast<core::NoticeEvent>(static_cast<int>(event) - 1);
}

std::optional<core::RunWord> FromProto(v1::RunState state) {
  if (state == v1::RUN_STATE_UNSPECIFIED || !v1::RunState_IsValid(state)) return std::nullopt;
  return static_cast<core::RunWord>(static_cast<int>(state) - 1);
}

std::optional<store::UsageKey> FromProto(v1::UsageKey key) {
  if (key == v1::USAGE_KEY_UNSPECIFIED || !v1::UsageKey_IsValid(key)) return std::nullopt;
  return static_cast<store::UsageKey>(static_cast<int>(key) - 1);
}

google::protobuf::Timestamp ToProto(absl::Time time) {
  google::protobuf::Timestamp to;
  const int64_t seconds = absl::ToUnixSeconds(time);  // rounds down, also before 1970
  to.set_seconds(seconds);
  to.set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(time - absl::FromUnixSeconds(seconds))));
  return to;
}

google::protobuf::Duration ToProto(absl::Duration duration) {
  google::protobuf::Duration to;
  absl::Duration rest;
  to.set_seconds(absl::IDivDuration(duration, absl::Seconds(1), &rest));
  to.set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(rest)));
  return to;
}

absl::Time FromProto(const google::protobuf::Timestamp& time) {
  return absl::FromUnixSeconds(time.seconds()) + absl::Nanoseconds(time.nanos());
}

absl::Duration FromProto(const google::protobuf::Duration& duration) {
  return absl::Seconds(duration.seconds()) + absl::Nanoseconds(duration.nanos());
}

}  // namespace tp::api
