#include "backends/local/local_backend.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <thread>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/time/clock.h"
#include "backends/driver/driver.h"
#include "base/strings.h"
#include "launch/host.h"
#include "tests/conformance/local_world.h"

namespace tp::local {
namespace {

using ::testing::HasSubstr;
using ::tp::testing::ReadText;
using ::tp::testing::WriteText;

absl::Time RenamedAt(const std::string& path) {
  struct stat about {};
  EXPECT_EQ(stat(path.c_str(), &about), 0);
  return absl::TimeFromTimespec(about.st_ctim);
}

class LocalBackendTest : public ::testing::Test {
 protected:
  LaunchSpec Spec(const std::string& program, int run = 1) const {
    LaunchSpec spec;
    spec.key = fmt::format("tp-{}-e1-{}-s0-a1", world_.deployment(), run);
    spec.nonce = "nonce-1";
    const std::string dir = fmt::format("{}/ada/train-{}", world_.storage_root(), run);
    spec.paths = {dir + "/attempts/train-1", dir + "/attempts/train-1/work", dir + "/output", dir + "/results/train"};
    spec.argv = world_.Command();
    spec.log_max_bytes = 1 << 20;
    spec.heartbeat_ms = 1000;
    RankLaunch rank;
    rank.env = {{conformance::kProgramVariable, program},
                {conformance::kNonceVariable, spec.nonce},
                {"TP_TEST_WITNESS", spec.paths.output_dir + "/witness-0-0"}};
    spec.ranks = {rank};
    return spec;
  }
  static AttemptTarget TargetOf(const LaunchSpec& spec) { return {spec.key, spec.nonce, spec.paths.attempt_dir, {1}}; }
  static absl::Time Soon() { return absl::Now() + absl::Seconds(30); }
  Backend& backend() { return world_.backend(); }

  Observation Observe(const LaunchSpec& spec) { return backend().Observe({TargetOf(spec)}, Soon()).front(); }
  Present Await(const LaunchSpec& spec, const std::function<bool(const Present&)>& done) {
    const absl::Time limit = Soon();
    while (absl::Now() < limit) {
      const Observation seen = Observe(spec);
      if (const Present* present = std::get_if<Present>(&seen); present != nullptr && done(*present)) return *present;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    ADD_FAILURE() << "what was awaited did not come";
    return {};
  }

  // A record as a rank of this or another machine would have left it.
  void WriteRecord(const LaunchSpec& spec, const std::string& name, const std::string& host, const std::string& boot_id,
                   const std::string& fields) {
    WriteText(spec.paths.attempt_dir + "/" + name,
              fmt::format("tp-record 1\nkey={}\nnonce={}\npool=0\nrank=0\nhost={}\nboot_id={}\n{}end\n", spec.key,
                          spec.nonce, host, boot_id, fields));
  }

  conformance::LocalWorld world_{true};
};

TEST_F(LocalBackendTest, ImagesAreRefused) {
  LaunchSpec spec = Spec("exit 0");
  spec.image = "pytorch";
  EXPECT_THAT(std::string(Message(backend().Validate(spec))), ::testing::HasSubstr("not the image 'pytorch'"));
}

TEST_F(LocalBackendTest, JobsSurviveTheDeathOfTheirLauncher) {
  const LaunchSpec spec = Spec("hold");
  const local::LocalOptions options = world_.options();
  const pid_t tpd = fork();
  if (tpd == 0) {
    auto created = LocalBackend::Create(options);
    if (!created.ok()) _exit(1);
    const LaunchResult result = (*created)->Launch(spec, Soon());
    if (!std::holds_alternative<LaunchAccepted>(result)) _exit(2);
    kill(getpid(), SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(waitpid(tpd, &status, 0), tpd);
  ASSERT_TRUE(WIFSIGNALED(status)) << "exit " << WEXITSTATUS(status);
  const Present running = Await(spec, [](const Present& present) { return present.ranks[0].started.has_value(); });
  EXPECT_EQ(running.claim, Claim::kThisLaunch);
  EXPECT_EQ(running.ranks[0].tree, Tree::kAlive);
  world_.AwaitReady(spec, 0, 0);
  EXPECT_GT(world_.ProcessesLeft(spec), 0);
}

TEST_F(LocalBackendTest, ARecordIsSeenWithinMilliseconds) {
  struct Seen {
    std::mutex mutex;
    std::condition_variable changed;
    std::map<std::string, absl::Time> at;  // when the loop would have heard of the end
  } seen;
  driver::DriverOptions options;
  options.eager_interval = absl::Hours(1);  // only the wake can be that fast
  options.interval = absl::Hours(1);
  std::shared_ptr<Backend> local = *LocalBackend::Create(world_.options());
  driver::Driver driver({{"local", local}},
                        {.effect_answered = [](int64_t, const loop::EffectResult&) {},
                         .attempt_observed =
                             [&seen](const std::string& key, const Observation& observation) {
                               const absl::Time now = absl::Now();
                               const Present* present = std::get_if<Present>(&observation);
                               if (present == nullptr || !present->freed) return;
                               const std::lock_guard lock(seen.mutex);
                               seen.at.emplace(key, now);
                               seen.changed.notify_all();
                             }},
                        options);
  constexpr int kJobs = 20;
  std::vector<absl::Duration> latencies;
  for (int job = 1; job <= kJobs; ++job) {
    const LaunchSpec spec = Spec("exit 0", job);
    driver.Track("local", TargetOf(spec));
    driver.Launch(job, "local", spec, TargetOf(spec));
    std::unique_lock lock(seen.mutex);
    ASSERT_TRUE(seen.changed.wait_for(lock, std::chrono::seconds(30), [&] { return seen.at.contains(spec.key); }));
    latencies.push_back(seen.at[spec.key] - RenamedAt(spec.paths.attempt_dir + "/0-0.exit"));
  }
  driver.Shutdown(Soon());
  std::sort(latencies.begin(), latencies.end());
  RecordProperty("median_us", static_cast<int>(absl::ToInt64Microseconds(latencies[kJobs / 2])));
  RecordProperty("max_us", static_cast<int>(absl::ToInt64Microseconds(latencies.back())));
  EXPECT_LT(latencies[kJobs / 2], absl::Milliseconds(100)) << "a poll would come after an hour";
}

TEST_F(LocalBackendTest, WakesOnEveryRecordAndOnARunnersDeath) {
  std::mutex mutex;
  std::condition_variable changed;
  int wakes = 0;
  auto local = *LocalBackend::Create(world_.options());
  local->SetWake([&](const std::string&) {
    const std::lock_guard lock(mutex);
    ++wakes;
    changed.notify_all();
  });
  const LaunchSpec spec = Spec("hold");
  const auto await_wake = [&](int after) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, std::chrono::seconds(30), [&] { return wakes > after; });
  };
  ASSERT_TRUE(std::holds_alternative<LaunchAccepted>(local->Launch(spec, Soon())));
  EXPECT_TRUE(await_wake(0));
  world_.AwaitReady(spec, 0, 0);
  // Seen once, so that the runner is watched.
  while (true) {
    const Observation seen = local->Observe({TargetOf(spec)}, Soon()).front();
    const Present* present = std::get_if<Present>(&seen);
    if (present != nullptr && present->ranks[0].started) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  int before = 0;
  {
    const std::lock_guard lock(mutex);
    before = wakes;
  }
  world_.KillRunner(spec, 0, 0);
  EXPECT_TRUE(await_wake(before));
}

TEST_F(LocalBackendTest, TheJobLivesInItsOwnCgroupWhichIsRemoved) {
  const std::string parent = world_.local().cgroup_parent();
  const LaunchSpec spec = Spec("hold");
  backend().Launch(spec, Soon());
  world_.AwaitReady(spec, 0, 0);
  const std::string group = fmt::format("{}/{}", parent, spec.key);
  if (!parent.empty()) {
    EXPECT_THAT(ReadText(group + "/0-0/cgroup.events"), HasSubstr("populated 1"));
    EXPECT_THAT(ReadText(group + "/runners/cgroup.events"), HasSubstr("populated 1"));
  }
  ASSERT_TRUE(backend().Stop(TargetOf(spec), StopLevel::kKill, Soon()).ok());
  Await(spec, [](const Present& present) { return present.freed; });
  EXPECT_TRUE(backend().Remove(TargetOf(spec), Soon()).ok());
  EXPECT_TRUE(parent.empty() || !std::filesystem::exists(group));
}

TEST_F(LocalBackendTest, AnAttemptOfBeforeTheRebootIsGone) {
  const LaunchSpec spec = Spec("hold");
  const launch::HostIdentity host = *launch::ReadHostIdentity();
  WriteRecord(spec, "attempt.claim", host.host, "another-boot", "owner=launch\n");
  WriteRecord(spec, "0-0.claim", host.host, "another-boot", "runner_pid=1\nrunner_start_ticks=1\n");
  WriteRecord(spec, "0-0.started", host.host, "another-boot", "started_boot_us=1\nstarted_unix_us=2\n");
  const Observation seen = Observe(spec);
  ASSERT_TRUE(std::holds_alternative<Present>(seen));
  EXPECT_TRUE(std::get<Present>(seen).freed);
  EXPECT_TRUE(std::get<Present>(seen).ranks[0].started);
  EXPECT_FALSE(std::get<Present>(seen).ranks[0].ended);
}

TEST_F(LocalBackendTest, AnAttemptOfAnotherMachineIsNotOursToDeclareGone) {
  const LaunchSpec spec = Spec("hold");
  WriteRecord(spec, "attempt.claim", "elsewhere", "another-boot", "owner=launch\n");
  WriteRecord(spec, "0-0.claim", "elsewhere", "another-boot", "runner_pid=1\nrunner_start_ticks=1\n");
  const Observation seen = Observe(spec);
  ASSERT_TRUE(std::holds_alternative<Present>(seen));
  const Present& present = std::get<Present>(seen);
  EXPECT_FALSE(present.freed);
  EXPECT_EQ(present.ranks[0].tree, Tree::kUnknown);
  EXPECT_THAT(present.reason, HasSubstr("elsewhere"));
}

TEST_F(LocalBackendTest, AReusedPidIsNotTheRunner) {
  const LaunchSpec spec = Spec("hold");
  const launch::HostIdentity host = *launch::ReadHostIdentity();
  WriteRecord(spec, "attempt.claim", host.host, host.boot_id, "owner=launch\n");
  WriteRecord(spec, "0-0.claim", host.host, host.boot_id,
              fmt::format("runner_pid={}\nrunner_start_ticks=1\n", getpid()));
  EXPECT_TRUE(Await(spec, [](const Present& present) { return present.freed; }).claim == Claim::kThisLaunch);
}

TEST_F(LocalBackendTest, ARankThatNeverClaimedAndHasNoProcessIsGone) {
  const LaunchSpec spec = Spec("hold");
  const launch::HostIdentity host = *launch::ReadHostIdentity();
  WriteRecord(spec, "attempt.claim", host.host, host.boot_id, "owner=launch\n");
  const Observation seen = Observe(spec);
  ASSERT_TRUE(std::holds_alternative<Present>(seen));
  EXPECT_TRUE(std::get<Present>(seen).freed);
}

TEST_F(LocalBackendTest, TheInventoryKnowsOnlyItsOwnDeployment) {
  LaunchSpec foreign = Spec("hold", 2);
  foreign.key = "tp-other-e1-2-s0-a1";
  const LaunchSpec own = Spec("hold", 1);
  for (const LaunchSpec& spec : {own, foreign}) {
    ASSERT_TRUE(std::holds_alternative<LaunchAccepted>(backend().Launch(spec, Soon())));
    world_.AwaitReady(spec, 0, 0);
  }
  const auto items = backend().Inventory(Soon());
  ASSERT_TRUE(items.ok()) << items.status();
  ASSERT_EQ(items->size(), 1u);
  EXPECT_EQ(items->front().key, own.key);
  EXPECT_TRUE(items->front().holds_cards);
  EXPECT_EQ(items->front().target, TargetOf(own));
  backend().Stop(TargetOf(foreign), StopLevel::kKill, Soon()).IgnoreError();
  Await(foreign, [](const Present& present) { return present.freed; });
}

TEST_F(LocalBackendTest, TheInventoryFindsATreeWhoseRunnerIsGone) {
  const LaunchSpec spec = Spec("hold");
  ASSERT_TRUE(std::holds_alternative<LaunchAccepted>(backend().Launch(spec, Soon())));
  world_.AwaitReady(spec, 0, 0);
  world_.KillRunner(spec, 0, 0);
  const auto items = backend().Inventory(Soon());
  ASSERT_TRUE(items.ok()) << items.status();
  EXPECT_EQ(items->size(), 1u);
  Await(spec, [](const Present& present) { return present.freed; });
  EXPECT_TRUE(backend().Inventory(Soon())->empty());
}

TEST_F(LocalBackendTest, WhatJobsPutInTheWayHidesNoAttempt) {
  namespace fs = std::filesystem;
  const LaunchSpec spec = Spec("hold");
  ASSERT_TRUE(std::holds_alternative<LaunchAccepted>(backend().Launch(spec, Soon())));
  world_.AwaitReady(spec, 0, 0);
  const fs::path attempt = spec.paths.attempt_dir;
  fs::create_directories(attempt.parent_path() / "main-9" / "attempt.claim");
  auto items = backend().Inventory(Soon());
  ASSERT_TRUE(items.ok()) << items.status();
  ASSERT_EQ(items->size(), 1u);
  EXPECT_EQ(items->front().target, TargetOf(spec));

  const fs::path run = attempt.parent_path().parent_path();
  const fs::path forged = run.parent_path().parent_path() / "zoe" / run.filename() / "attempts" / attempt.filename();
  fs::create_directories(forged.parent_path());
  fs::copy(attempt, forged, fs::copy_options::recursive);
  items = backend().Inventory(Soon());
  ASSERT_TRUE(items.ok()) << items.status();
  ASSERT_EQ(items->size(), 1u);
  EXPECT_FALSE(items->front().target) << "one of the two is forged: no orders follow";
  ASSERT_TRUE(backend().Stop(TargetOf(spec), StopLevel::kKill, Soon()).ok());
  Await(spec, [](const Present& present) { return present.freed; });
}

TEST_F(LocalBackendTest, RefusesAGoneSnapshotForGood) {
  LaunchSpec spec = Spec("exit 0");
  spec.snapshot_id = std::string(64, 'a');
  const LaunchResult result = backend().Launch(spec, Soon());
  ASSERT_TRUE(std::holds_alternative<LaunchRejected>(result));
  EXPECT_EQ(std::get<LaunchRejected>(result).kind, LaunchRejected::Kind::kStorage);
  EXPECT_THAT(std::get<LaunchRejected>(result).reason, HasSubstr("submit again"));
}

TEST_F(LocalBackendTest, SaysWhatIsWrongWithStorageOrRunner) {
  LocalOptions options = world_.options();
  options.storage_root = "/no/such/storage";
  EXPECT_EQ(LocalBackend::Create(options).status().code(), absl::StatusCode::kNotFound);
  options.storage_root = "relative";
  EXPECT_EQ(LocalBackend::Create(options).status().code(), absl::StatusCode::kInvalidArgument);
  options = world_.options();
  options.rank_binary = "/bin/echo";
  EXPECT_THAT(std::string(Message(LocalBackend::Create(options).status())), HasSubstr("not the tp-rank"));
}

}  // namespace
}  // namespace tp::local
