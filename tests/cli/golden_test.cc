// Every command's output for people and for programs, against a server whose data never changes:
// golden/COMMAND.txt. TP_UPDATE_GOLDEN=1 writes them anew; read the difference before committing it.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include "absl/time/clock.h"
#include "cli/parser.h"
#include "cli/render/time.h"
#include "command_fixture.h"

namespace tp::cli {
namespace {

using Arguments = std::vector<std::string>;

// The calls of each command, by its name. Each is made for people, wide, and as JSON where it says so.
struct Call {
  Arguments arguments;
  bool json = true;
};
using Calls = std::map<std::string, std::vector<Call>>;

const Calls& AllCalls() {
  static const Calls calls = {
      {"submit",
       {{{"submit", "--dry-run", "--profile", "h200:16", "--", "python3", "train.py"}},
        {{"submit", "--", "python3", "train.py"}}}},
      {"status", {{{"status"}}}},
      {"ls",
       {{{"ls"}},
        {{"ls", "-o", "wide"}, false},
        {{"ls", "-o", "name"}, false},
        {{"ls", "-o", "yaml", "-n", "1"}, false}}},
      {"show",
       {{{"show", "train-43"}},
        {{"show", "eval-40"}},
        {{"show", "old-39"}},
        {{"show", "pipe-44"}, false},
        {{"show", "sweep-45"}}}},
      {"queue", {{{"queue"}}, {{"queue", "-o", "wide"}, false}, {{"queue", "-n", "1"}, false}}},
      {"why", {{{"why", "train-43"}}, {{"why", "eval-40"}}}},
      {"logs", {{{"logs", "eval-40"}, false}}},
      {"stop", {{{"stop", "train-43"}}}},
      {"pause", {{{"pause", "train-43"}}}},
      {"resume", {{{"resume", "train-43"}}}},
      {"retry", {{{"retry", "eval-40"}}, {{"retry", "nosuch-7"}}}},
      {"rm", {{{"rm", "eval-40"}}, {{"rm", "--state", "failed"}}}},
      {"hold", {{{"hold", "train-43"}}}},
      {"release", {{{"release", "train-43"}}}},
      {"wait", {{{"wait", "eval-40"}}}},
      {"clone", {{{"clone", "train-43"}}, {{"clone", "train-43", "--dry-run"}}}},
      {"update", {{{"update", "train-43", "--priority", "10"}}}},
      {"results ls",
       {{{"results", "ls", "eval-40", "-o", "wide"}, false}, {{"results", "ls", "eval-40", "-o", "json"}, false}}},
      {"results get", {{{"results", "get", "eval-40"}}}},
      {"metrics",
       {{{"metrics", "eval-40"}},
        {{"metrics", "eval-40", "--plot"}, false},
        {{"metrics", "eval-40", "-o", "csv"}, false}}},
      {"usage", {{{"usage", "--by", "run"}}, {{"usage", "-o", "csv"}, false}, {{"usage", "--audit"}}}},
      {"events", {{{"events", "train-43"}}}},
      {"admin reload",
       {{{"admin", "reload"}, false},
        {{"admin", "reload", "--dry-run"}},
        {{"admin", "reload", "--dry-run", "-o", "wide"}, false}}},
      {"admin reconcile", {{{"admin", "reconcile"}, false}, {{"admin", "reconcile", "--dry-run"}}}},
      {"admin quota set",
       {{{"admin", "quota", "set", "alice", "--gpus", "16", "--series", "h200=none"}},
        {{"admin", "quota", "set", "alice", "--gpus", "8", "--dry-run"}, false},
        {{"admin", "quota", "set", "alice", "--gpus", "all"}}}},
      {"admin quota show", {{{"admin", "quota", "show", "alice"}}}},
      {"admin quota list", {{{"admin", "quota", "list"}}}},
      {"admin quota unset",
       {{{"admin", "quota", "unset", "3"}},
        {{"admin", "quota", "unset", "alice"}},
        {{"admin", "quota", "unset", "3", "--dry-run"}, false}}},
      {"admin window hold-open",
       {{{"admin", "window", "hold-open", "h200", "--for", "3h"}},
        {{"admin", "window", "hold-open", "h200", "--for", "3h", "--dry-run"}, false},
        {{"admin", "window", "hold-open", "h200"}}}},
      {"admin nodes",
       {{{"admin", "nodes"}}, {{"admin", "nodes", "node-2"}, false}, {{"admin", "nodes", "-o", "wide"}, false}}},
      {"admin node drain", {{{"admin", "node", "drain", "node-2", "--reason", "new power supply"}}}},
      {"admin node undrain", {{{"admin", "node", "undrain", "node-2", "--card", "3"}}}},
      {"admin node dead",
       {{{"admin", "node", "dead", "node-2"}, false}, {{"admin", "node", "dead", "node-2", "--yes"}}}},
      {"windows", {{{"windows"}}}},
      {"admin registry status", {{{"admin", "registry", "status"}}}},
      {"admin receivers", {{{"admin", "receivers"}}}},
      {"profiles", {{{"profiles"}}, {{"profiles", "--executors"}}}},
      {"series", {{{"series"}}}},
      {"whoami", {{{"whoami"}}}},
      {"version", {{{"version"}}, {{"version", "--client"}}}},
      {"context ls", {{{"context", "ls"}}}},
      {"context use", {{{"context", "use", "lab"}}}},
      {"context add", {{{"context", "add", "other", "--server", "https://tp.example.org:443"}}}},
      {"context rm", {{{"context", "rm", "lab"}}}},
      {"completion",
       {{{"completion", "bash"}, false}, {{"completion", "zsh"}, false}, {{"completion", "fish"}, false}}},
  };
  return calls;
}

// Commands that do something; `results` alone is `results ls`.
void CollectLeaves(const CLI::App& command, const std::string& path, std::set<std::string>& leaves) {
  const auto inner = command.get_subcommands(nullptr);
  if (inner.empty()) leaves.insert(path);
  for (const CLI::App* one : inner) {
    CollectLeaves(*one, path.empty() ? one->get_name() : path + " " + one->get_name(), leaves);
  }
}

v1::EstimateErrors SoFar() {
  v1::EstimateErrors errors;
  errors.set_starts(41);
  *errors.mutable_median_off() = ToProto(absl::Minutes(12));
  *errors.mutable_p90_off() = ToProto(absl::Hours(3));
  *errors.mutable_bias() = ToProto(-absl::Minutes(11));
  return errors;
}

v1::StartEstimate StartsIn(absl::Duration duration) {
  v1::StartEstimate estimate;
  *estimate.mutable_starts_at() = ToProto(absl::Now() + duration + absl::Seconds(30));
  return estimate;
}

v1::Run QueuedRun() {
  v1::Run run = MakeRun(43, "train", v1::RUN_STATE_QUEUED, absl::Minutes(5));
  run.set_reason("CAPACITY: h200 needs 2 nodes x 8 cards, 3 of 32 cards are free");
  run.set_priority(30);
  run.set_version("0123456789abcdef");
  run.set_snapshot_id(std::string(64, 'a'));
  v1::Step& step = *run.mutable_steps(0);
  step.set_reason(run.reason());
  step.set_held_by_owner(true);
  v1::GateVerdict& held = *step.add_gates();
  held.set_gate(v1::GATE_HELD);
  held.set_sentence("held by its owner: tp release lets it go");
  v1::GateVerdict& capacity = *step.add_gates();
  capacity.set_gate(v1::GATE_CAPACITY);
  capacity.set_sentence("h200 needs 2 nodes x 8 cards, 3 of 32 cards are free");
  *step.mutable_estimate() = StartsIn(absl::Minutes(130));
  *step.mutable_estimate()->mutable_so_far() = SoFar();
  return run;
}

v1::Run FailedRun() {
  v1::Run run = MakeRun(40, "eval", v1::RUN_STATE_FAILED);
  run.set_priority(50);
  run.set_gpu_ms(12'345);
  run.set_retry_count(1);
  run.set_reason("rank 0-1 ended with exit 3");
  (*run.mutable_labels())["team"] = "vision";
  *run.mutable_ended_at() = ToProto(absl::Now() - absl::Hours(1));
  v1::Step& step = *run.mutable_steps(0);
  step.set_reason(run.reason());
  step.set_exit("exit 3");
  (*step.mutable_spec()->mutable_explicit_env())["LR"] = "0.1";
  (*step.mutable_spec()->mutable_explicit_env())["HF_TOKEN"] = "hunter2";
  step.mutable_failure()->set_kind("user_exit");
  step.mutable_failure()->set_sentence("rank 0-1 ended with exit 3");
  for (int number = 1; number <= 2; ++number) {
    v1::Attempt& attempt = *step.add_past_attempts();
    attempt.set_number(number);
    attempt.set_backend("local");
    *attempt.mutable_created_at() = ToProto(absl::Now() - absl::Hours(4 - number));
    *attempt.mutable_ended_at() = ToProto(absl::Now() - absl::Hours(4 - number) + absl::Minutes(4));
    attempt.set_outcome(v1::JOB_STATE_FAILED);
    attempt.set_exit("exit 3 of rank 0-1");
    attempt.add_nodes("n1");
    attempt.add_nodes("n2");
    attempt.set_cards(16);
    attempt.set_metered_ms(1000);
  }
  return run;
}

v1::Run RemovedRun() {
  v1::Run run = MakeRun(39, "old", v1::RUN_STATE_SUCCEEDED, absl::Hours(72));
  run.set_priority(50);
  *run.mutable_removed_at() = ToProto(absl::Now() - absl::Hours(48));
  return run;
}

v1::Run PipelineRun() {
  v1::Run run = MakeRun(44, "pipe", v1::RUN_STATE_RUNNING, absl::Minutes(50));
  run.set_state_text("RUNNING (export, step 2 of 4)");
  run.mutable_steps(0)->set_state(v1::JOB_STATE_SUCCEEDED);
  run.mutable_steps(0)->set_state_text("SUCCEEDED");
  const auto add = [&run](const std::string& name, v1::JobState state, v1::AfterWhen when, const std::string& after) {
    v1::Step& step = *run.add_steps();
    step = run.steps(0);
    step.set_index(run.steps_size());
    step.mutable_spec()->set_name(name);
    step.set_state(state);
    step.set_state_text(v1::JobState_Name(state).substr(sizeof("JOB_STATE_") - 1));
    step.mutable_spec()->mutable_after()->set_step(after);
    step.mutable_spec()->mutable_after()->set_when(when);
  };
  add("export", v1::JOB_STATE_RUNNING, v1::AFTER_WHEN_SUCCESS, "main");
  add("eval", v1::JOB_STATE_QUEUED, v1::AFTER_WHEN_SUCCESS, "export");
  run.mutable_steps(2)->set_reason("DEPENDENCY: waits for step 2 (export), which is RUNNING");
  add("tidy", v1::JOB_STATE_STOPPED, v1::AFTER_WHEN_FAILURE, "main");
  run.mutable_steps(3)->set_reason("step main ended SUCCEEDED, so this step can never run");
  return run;
}

v1::Run ArrayRun() {
  v1::Run run = MakeRun(45, "sweep", v1::RUN_STATE_RUNNING, absl::Minutes(50));
  run.set_state_text("RUNNING (1 running, 1 failed of 1000 tasks)");
  v1::RunDependency& after = *run.add_after();
  after.set_run("train-41");
  after.set_when(v1::AFTER_WHEN_ALWAYS);
  after.set_outcome(v1::RUN_STATE_FAILED);
  v1::Notice& notice = *run.add_notify();
  notice.set_to("chat");
  notice.add_on(v1::NOTICE_EVENT_FAILED);
  notice.add_on(v1::NOTICE_EVENT_PAUSED);
  v1::ArrayStatus& array = *run.mutable_array();
  array.set_tasks(1000);
  array.set_limit(16);
  array.set_running(1);
  array.set_failed(1);
  array.set_queued(998);
  run.mutable_steps(0)->mutable_spec()->set_array_index(0);
  run.mutable_steps(0)->mutable_spec()->set_name("task-0");
  v1::Step& failed = *run.add_steps();
  failed.set_index(2);
  failed.mutable_spec()->set_array_index(7);
  failed.set_state(v1::JOB_STATE_FAILED);
  failed.set_reason("rank 0-0: exit 3: its log says why");
  v1::Step& waiting = *run.add_steps();
  waiting.set_index(3);
  waiting.mutable_spec()->set_array_index(14);
  waiting.set_state(v1::JOB_STATE_QUEUED);
  return run;
}

class GoldenTest : public CommandTest, public testing::WithParamInterface<std::string> {
 protected:
  GoldenTest() {
    Script& script = server_.script();
    script.runs = {QueuedRun(),   MakeRun(41, "big", v1::RUN_STATE_RUNNING, absl::Hours(26)),
                   FailedRun(),   RemovedRun(),
                   PipelineRun(), ArrayRun()};
    script.runs[1].mutable_steps(0)->mutable_attempt()->add_nodes("n1");
    script.notes = {"LR=0.1 replaces 0.2 of the profile"};
    script.steer_note = "noted";
    script.watch = {FailedRun()};
    script.results = {{"main/report.json", "{}"}, {"main/plots/loss.txt", "3 2 1"}};
    script.metrics = {R"({"step": 1, "loss": 2.5, "lr": 0.1})", R"({"step": 2, "loss": 2.25})"};
    FillLog(script);
    FillUsage(script);
    FillRegistry(script);
    FillReload(script);
    FillReconcile(script.reconcile);
    FillReceivers(script);
    FillQueue(script);
    FillQuota(script);
    FillWindows(script);
    FillNodes(script);
    FillContexts();
    project_.Write("train.py", "print('hello')\n");
  }

  static void FillLog(Script& script) {
    v1::ReadLogResponse& chunk = script.log.emplace_back();
    chunk.set_rank("0-0");
    chunk.set_attempt(2);
    chunk.set_data("epoch 1\nepoch 2\n");
    v1::Event& event = script.events.emplace_back();
    event.set_revision(5);
    event.set_run(43);
    event.set_step(1);
    *event.mutable_at() = ToProto(absl::Now() - absl::Minutes(2));
    event.set_event("submitted");
    event.set_from(v1::JOB_STATE_QUEUED);
    event.set_to(v1::JOB_STATE_QUEUED);
  }

  static void FillUsage(Script& script) {
    for (const auto& [key, gpu_ms] : std::map<std::string, int64_t>{{"eval-40", 12'345}, {"train-43", 7'200'000}}) {
      v1::UsageRow& row = *script.usage.add_rows();
      row.set_key(key);
      row.set_gpu_ms(gpu_ms);
      row.set_runs(1);
    }
    v1::Interval& interval = script.intervals.emplace_back();
    interval.set_seq(1);
    interval.set_run("eval-40");
    interval.set_step(1);
    interval.set_attempt(1);
    interval.set_series("h200");
    interval.set_profile("h200");
    interval.set_owner("alice");
    interval.set_project("default");
    interval.set_cards(16);
    interval.mutable_start()->set_seconds(1'796'025'612);
    interval.mutable_end()->set_seconds(1'796'025'613);
    interval.set_gpu_ms(16'000);
    interval.set_evidence("end records");
  }

  // More than a screenful.
  static void FillForecast(v1::QueueForecast& forecast) {
    const auto add = [&](v1::QueueEffectKind kind, int count, v1::Gate gate, const std::string& sentence) {
      v1::QueueEffectCount& counted = *forecast.add_counts();
      counted.set_kind(kind);
      counted.set_count(count);
      for (int i = 0; i < std::min(count, 12); ++i) {
        v1::QueueEffect& effect = *forecast.add_effects();
        effect.set_kind(kind);
        effect.set_run(fmt::format("train-{}", 100 + forecast.effects_size()));
        effect.set_step("main");
        effect.set_gate(gate);
        effect.set_sentence(sentence);
      }
    };
    add(v1::QUEUE_EFFECT_KIND_RELEASED, 12, v1::GATE_UNSPECIFIED, "h200:8 = 1 node x 8");
    add(v1::QUEUE_EFFECT_KIND_HELD, 1200, v1::GATE_HELD, "profile h200-big is not in the registry");
    add(v1::QUEUE_EFFECT_KIND_PAUSED, 1, v1::GATE_WINDOW, "its window is closed for good");
    v1::OverQuota& over = *forecast.add_over();
    over.set_user("alice");
    over.set_what("gpus");
    over.set_used(16);
    over.set_limit(8);
  }

  static void FillReload(Script& script) {
    v1::ReloadConfigurationResponse& reload = script.reload;
    reload.set_registry_version(4);
    v1::ConfigurationChange& change = *reload.add_changes();
    change.set_kind(v1::CONFIGURATION_CHANGE_KIND_REMOVED);
    change.set_what("profile");
    change.set_name("h200-big");
    reload.add_restart_keys("server.listen");
    FillForecast(*reload.mutable_forecast());
    v1::GetRegistryStatusResponse& status = script.registry_status;
    status.set_version(4);
    status.mutable_loaded_at()->set_seconds(absl::ToUnixSeconds(absl::Now() - absl::Hours(3)));
    status.set_source_sha256(std::string(64, 'a'));
    status.set_directory("/etc/tp");
    status.set_differs_on_disk(true);
    status.mutable_last_fault()->mutable_at()->set_seconds(absl::ToUnixSeconds(absl::Now() - absl::Minutes(5)));
    status.mutable_last_fault()->add_problems("registry.yaml:3:5: unknown key 'nods' in a series; did you mean nodes?");
  }

  static void FillReconcile(v1::ReconcileResponse& reconcile) {
    const auto add = [&](v1::ReconcileFindingKind kind, const std::string& key, const std::string& sentence) {
      v1::ReconcileFinding& finding = *reconcile.add_findings();
      finding.set_kind(kind);
      finding.set_backend("local");
      finding.set_key(key);
      finding.set_sentence(sentence);
    };
    add(v1::RECONCILE_FINDING_KIND_FOREIGN, "tp-lab-e1-7-s0-a1", "of epoch 1, and this is epoch 2: end it by hand");
    add(v1::RECONCILE_FINDING_KIND_ORPHAN, "tp-lab-e2-9-s0-a2", "no live attempt is its own: it is ended");
    add(v1::RECONCILE_FINDING_KIND_MISSING, "tp-lab-e2-43-s0-a1", "train-43 has nothing of it on local");
    reconcile.set_note("1 orphan is being ended");
  }

  static void FillReceivers(Script& script) {
    v1::Receiver& chat = *script.receivers.add_receivers();
    chat.set_name("chat");
    chat.set_configured(true);
    chat.set_delivered(12);
    v1::Receiver& old = *script.receivers.add_receivers();
    old.set_name("pager");
    old.set_waiting(1);
    old.set_delivered(3);
    old.set_given_up(2);
    old.set_last_error("it answers 503");
    *old.mutable_last_failed_at() = ToProto(absl::Now() - absl::Minutes(5));
  }

  static void FillRegistry(Script& script) {
    v1::Profile& profile = script.profiles.emplace_back();
    profile.set_name("h200");
    profile.set_series("h200");
    profile.set_default_shape("h200:8 = 1 node x 8");
    profile.set_description("NVIDIA H200");
    v1::Series& series = script.series.emplace_back();
    series.set_name("h200");
    series.set_nodes(4);
    series.set_gpus_per_node(8);
    series.set_total_cards(32);
    series.set_free_cards(3);
    series.set_backend("slurm");
  }

  static void FillQueue(Script& script) {
    v1::QueueEntry& other = script.queue.emplace_back();
    other.set_position(1);
    other.set_shape("h200:8 = 1 node x 8");
    other.set_cards(8);
    other.add_series("h200");
    other.set_priority(50);
    other.set_effective_priority(51);
    *other.mutable_submitted_at() = ToProto(absl::Now() - absl::Hours(7));
    other.mutable_gate()->set_gate(v1::GATE_QUOTA_GPUS);
    other.set_gate_count(1);
    *other.mutable_estimate() = StartsIn(absl::Minutes(5));
    script.estimates_so_far = SoFar();
    script.queue.push_back(script.queue.front());
    v1::QueueEntry& own = script.queue.back();
    own.set_position(2);
    own.set_run("train-43");
    own.set_step(1);
    own.set_step_name("main");
    own.set_owner("alice");
    own.set_shape("h200:16 = 2 nodes x 8");
    own.set_cards(16);
    own.set_priority(30);
    own.set_effective_priority(30);
    *own.mutable_gate() = script.runs[0].steps(0).gates(0);
    own.set_gate_count(2);
    own.mutable_estimate()->clear_starts_at();
    own.mutable_estimate()->set_why_none("it is held");
    v1::StepExplanation& why = script.explained.emplace_back();
    *why.mutable_estimate() = script.runs[0].steps(0).estimate();
    why.add_hints("h200:8 would start now");
    why.set_position(2);
    why.set_queue_length(2);
    why.set_ahead_count(1);
    why.set_ahead_cards(8);
    *why.add_ahead() = script.queue.front();
  }

  static void FillQuota(Script& script) {
    script.note = "this is in force now";
    v1::Standing& standing = *script.standing.mutable_standing();
    standing.set_user("alice");
    standing.mutable_limits()->set_gpus(8);
    standing.mutable_limits()->set_gpu_hours(500);
    standing.mutable_limits()->set_storage_bytes(int64_t{1} << 40);
    (*standing.mutable_limits()->mutable_series_gpus())["h200"] = 16;
    standing.mutable_use()->set_gpus(16);
    standing.mutable_use()->set_jobs(1);
    standing.mutable_use()->set_month_gpu_ms(44'280'000);
    (*standing.mutable_use()->mutable_series_gpus())["h200"] = 16;
    standing.mutable_use()->mutable_storage()->set_bytes(int64_t{3} << 30);
    *standing.mutable_use()->mutable_storage()->mutable_scanned_at() = ToProto(absl::Now() - absl::Minutes(10));
    v1::QuotaRule& rule = *standing.add_rules();
    rule.set_id(3);
    rule.mutable_limits()->set_gpus(8);
    *rule.mutable_until() = ToProto(absl::Now() + absl::Hours(3) + absl::Seconds(30));
    *rule.mutable_set_at() = ToProto(absl::Now() - absl::Hours(2));
    rule.set_set_by("root");
    script.standing.mutable_defaults()->set_gpus(32);
    script.standings = {standing};
    v1::Standing& free = script.standings.emplace_back();
    free.set_user("bob");
    free.mutable_use()->set_gpus(8);
  }

  static void FillNodes(Script& script) {
    for (int i = 1; i <= 4; ++i) {
      v1::Node& node = script.nodes.emplace_back();
      node.set_name(fmt::format("node-{}", i));
      node.set_address(fmt::format("10.0.0.{}", i));
      node.add_series("h200");
      node.add_backends("node");
      node.set_cards(8);
      v1::NodeHealth& health = *node.mutable_health();
      health.set_reachable(i != 3);
      *health.mutable_since() = ToProto(absl::Now() - absl::Hours(3) - absl::Seconds(30));
      health.set_disk_free_bytes(int64_t{310} << 30);
      *health.mutable_clock_offset() = ToProto(i == 1 ? absl::Milliseconds(2) : absl::Milliseconds(-1500));
      health.set_boot_id("0f2c9a");
    }
    script.nodes[2].mutable_health()->set_why("connection timed out");
    v1::Node& drained = script.nodes[1];
    v1::NodeMark& mark = *drained.add_marks();
    mark.set_kind(v1::NODE_MARK_KIND_DRAINED);
    mark.set_reason("new power \x1b[31msupply");
    mark.set_set_by("olga");
    *mark.mutable_set_at() = ToProto(absl::Now() - absl::Hours(2) - absl::Seconds(30));
    v1::NodeStrike& strike = *drained.add_strikes();
    strike.set_owner("alice");
    strike.set_run(43);
    strike.set_attempt(2);
    strike.set_kind("gpu_lost");
    *strike.mutable_at() = ToProto(absl::Now() - absl::Hours(4) - absl::Seconds(30));
    for (int card = 0; card < 3; ++card) {
      v1::NodeHolder& holder = *drained.add_holders();
      holder.set_card(card);
      if (card == 0) holder.set_run_id("train-43");
      if (card < 2) holder.set_owner(card == 0 ? "alice" : "bob");
      if (card == 2) holder.set_elsewhere("container trainer");
    }
    v1::NodeMark& card = *script.nodes[3].add_marks();
    card.set_card(3);
    card.set_kind(v1::NODE_MARK_KIND_DRAINED);
    card.set_reason("Xid 79");
    card.set_set_by("tpd");
    *card.mutable_set_at() = ToProto(absl::Now() - absl::Minutes(5) - absl::Seconds(30));
  }

  static void FillWindows(Script& script) {
    v1::SeriesWindows& windows = script.windows.emplace_back();
    windows.set_series("h200");
    v1::WindowHours& hours = *windows.add_hours();
    v1::WindowRule& rule = *hours.add_rules();
    rule.set_zone("Europe/Berlin");
    rule.set_hours("Mon-Fri 19:00-07:00, Sat 00:00-24:00");
    rule.mutable_grace()->set_seconds(300);
    rule.mutable_min_remaining()->set_seconds(1800);
    const absl::Time edge = absl::Now() + absl::Hours(5) + absl::Seconds(30);
    *hours.mutable_next_edge() = ToProto(edge);
    v1::WindowOpening& opening = *hours.add_openings();
    *opening.mutable_opens_at() = ToProto(edge);
    *opening.mutable_closes_at() = ToProto(edge + absl::Hours(12));
  }

  void FillContexts() {
    project_.Write(".config/tp/config.json",
                   R"({"current": "", "contexts": {"lab": {"server": "https://lab.example.org:443"}}})", 0600);
  }

  // One call as a block of the golden file.
  std::string Block(Arguments arguments) {
    const std::string line = fmt::format("$ tp {}\n", fmt::join(arguments, " "));
    const Finished tp = Tp(arguments);
    std::string block = line + Stable(tp.out);
    if (!tp.err.empty()) block += "stderr:\n" + Stable(tp.err);
    if (tp.exit_code != 0) block += fmt::format("exit code {}\n", tp.exit_code);
    return block + "\n";
  }

  // Without what differs from machine to machine and from run to run.
  std::string Stable(std::string text) {
    static const std::regex kId(R"(\b[0-9a-f]{64}\b)");
    static const std::regex kClock(R"([A-Z][a-z]{2} [ \d]?\d [A-Z][a-z]{2} \d\d:\d\d)");
    static const std::regex kHere(R"((CLOCK|\d\d:\d\d) here)");
    text = std::regex_replace(WithoutTimes(text), kId, "SHA256");
    text = std::regex_replace(text, kClock, "CLOCK");
    text = std::regex_replace(text, kHere, "HERE");
    for (const auto& [from, to] : {std::pair(server_.address(), "SERVER"), std::pair(project_.path(), "HOME")}) {
      for (size_t at = 0; (at = text.find(from, at)) != std::string::npos;) text.replace(at, from.size(), to);
    }
    return text;
  }
};

std::string FileOf(const std::string& command) {
  std::string name = command;
  std::replace(name.begin(), name.end(), ' ', '-');
  return fmt::format("{}/{}.txt", TP_GOLDEN_DIR, name);
}

std::vector<std::string> CommandsWithCalls() {
  std::vector<std::string> commands;
  for (const auto& [command, calls] : AllCalls()) commands.push_back(command);
  return commands;
}

TEST_P(GoldenTest, IsAsItWas) {
  std::string actual;
  for (const Call& call : AllCalls().at(GetParam())) {
    actual += Block(call.arguments);
    if (!call.json) continue;
    Arguments json = call.arguments;
    json.insert(json.begin() + 1, {"-o", "json"});
    actual += Block(json);
  }
  actual.pop_back();  // the blank line behind the last block
  if (std::getenv("TP_UPDATE_GOLDEN") != nullptr) std::ofstream(FileOf(GetParam())) << actual;
  EXPECT_EQ(actual, ReadFile(FileOf(GetParam()))) << "TP_UPDATE_GOLDEN=1 writes " << FileOf(GetParam()) << " anew";
}

std::string TestName(const testing::TestParamInfo<std::string>& command) {
  std::string name = command.param;
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == ' ' || c == '-'; }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Commands, GoldenTest, testing::ValuesIn(CommandsWithCalls()), TestName);

TEST(GoldenCoverageTest, EveryCommandHasGoldens) {
  Context context;
  CLI::App app;
  BuildParser(app, context);
  std::set<std::string> leaves;
  CollectLeaves(app, "", leaves);
  for (const std::string& leaf : leaves) {
    EXPECT_EQ(AllCalls().count(leaf), 1U) << "tp " << leaf << " needs calls in golden_test.cc";
  }
  for (const auto& entry : std::filesystem::directory_iterator(TP_GOLDEN_DIR)) {
    const std::vector<std::string> commands = CommandsWithCalls();
    EXPECT_TRUE(std::any_of(commands.begin(), commands.end(),
                            [&](const std::string& command) { return FileOf(command) == entry.path().string(); }))
        << entry.path() << " belongs to no command";
  }
}

}  // namespace
}  // namespace tp::cli
