// What a release costs tpd's loop while many steps wait for their owners' quota: the turn that takes the end
// of a job, releases its cards and starts the next one of the same owner.
//
//   bench_planner QUEUED [RELEASES]
//
// Prints one line of JSON: turns in microseconds of processor time, classes judged and woken, memory of a waiting step
// beyond its argv and env.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "loop/loop.h"

namespace {

constexpr int kUsers = 500;
constexpr int kSpecBytes = 1024;  // of argv and env

class Sink : public tp::loop::EffectSink {
 public:
  void Launch(int64_t, const std::string&, const tp::LaunchSpec& spec, const tp::AttemptTarget&) override {
    keys[spec.owner] = spec.key;
    nonces[spec.owner] = spec.nonce;
  }
  void Fence(int64_t, const std::string&, const tp::AttemptTarget&) override {}
  void Signal(int64_t, const std::string&, const tp::AttemptTarget&, tp::StopLevel) override {}
  void Remove(int64_t, const std::string&, const tp::AttemptTarget&) override {}
  void Track(const std::string&, const tp::AttemptTarget&) override {}
  void Untrack(const std::string&) override {}
  void Look(const std::string&, const tp::AttemptTarget&) override {}

  std::map<std::string, std::string> keys;  // of each owner's live attempt
  std::map<std::string, std::string> nonces;
};

std::shared_ptr<const tp::core::Registry> OneCardForEveryUser() {
  auto registry = std::make_shared<tp::core::Registry>();
  tp::core::Executor executor;
  executor.name = "gpu/default";
  executor.provider = "gpu";
  executor.profile = "default";
  executor.backend = "local";
  executor.config_json = "{}";
  registry->executors[executor.name] = executor;
  tp::core::Series series;
  series.name = "h200";
  series.gpus_per_node = 8;
  series.executor = executor.name;
  for (int i = 0; i < kUsers / 8 + 1; ++i) series.nodes.push_back({fmt::format("node-{}", i), "127.0.0.1"});
  tp::core::Profile profile;
  profile.name = profile.series = series.name;
  registry->series[series.name] = std::move(series);
  registry->profiles["h200"] = std::move(profile);
  registry->quota_defaults.gpus = 1;
  return registry;
}

std::string UserOf(int i) { return fmt::format("user-{:03}", i % kUsers); }

tp::loop::Command SubmitOf(int i) {
  tp::core::StepSpec step;
  step.name = "train";
  step.argv = {"python3", "train.py", std::string(kSpecBytes / 2, 'a')};
  step.env = {{"CONFIG", std::string(kSpecBytes / 2, 'e')}};
  step.profiles = {"h200:1"};
  tp::loop::SubmitRun submit;
  submit.name = "train";
  submit.project = "bench";
  submit.labels = {{"team", "vision"}, {"model", "resnet"}, {"sweep", fmt::format("s{}", i / kUsers)}};
  submit.steps = {std::move(step)};
  return {.who = {UserOf(i), tp::store::Role::kUser},
          .request_id = fmt::format("r{}", i),
          .method = "Submit",
          .body_sha256 = "",
          .action = std::move(submit)};
}

tp::Observation Ended(const std::string& nonce) {
  tp::Present present;
  present.claim = tp::Claim::kThisLaunch;
  present.phase = tp::EnginePhase::kEnded;
  present.freed = true;
  tp::RankObservation rank;
  rank.tree = tp::Tree::kGone;
  rank.started = tp::StartRecord{nonce, {"h", "b", 1'000'000, 1'800'000'000'000'000}};
  rank.ended = tp::EndRecord{};
  rank.ended->at = {"h", "b", 3'000'000, 1'800'000'002'000'000};
  present.ranks.push_back(rank);
  return present;
}

double ProcessorUs() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_nsec) / 1e3;
}

int64_t ResidentBytes() {
  int64_t pages = 0;
  int64_t resident = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

void TurnUntilQuiet(tp::loop::Loop& loop, absl::Time now) {
  do {
    if (loop.Turn(now)) loop.Committed();
  } while (loop.HasMessages() || loop.NextTimer().value_or(absl::InfiniteFuture()) <= now);
}

// As many requests as the loop remembers at most, so that they are not taken for a part of the queue.
void FillRemembered(tp::loop::Loop& loop, absl::Time now) {
  constexpr int kRemembered = 100'000;
  for (int i = 0; i < kRemembered; ++i) {
    loop.Post(tp::loop::Command{.who = {UserOf(i), tp::store::Role::kUser},
                                .request_id = fmt::format("s{}", i),
                                .method = "Submit",
                                .body_sha256 = "",
                                .action = tp::loop::AddSnapshot{}},
              [](const absl::StatusOr<tp::loop::Answer>&) {});
    if (i % 256 == 255) TurnUntilQuiet(loop, now);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int queued = argc > 1 ? std::atoi(argv[1]) : 100'000;
  const int releases = argc > 2 ? std::atoi(argv[2]) : 1000;
  tp::loop::Settings settings;
  settings.deployment = {"bench", 1};
  settings.layout.storage_root = "/data";
  Sink sink;
  int64_t nonce = 0;
  tp::loop::Loop loop(settings, {}, OneCardForEveryUser(), sink, [&nonce] { return fmt::format("{:032x}", ++nonce); });
  absl::Time now = absl::FromUnixSeconds(1'800'000'000);
  TurnUntilQuiet(loop, now);
  FillRemembered(loop, now);
  const int64_t before = ResidentBytes();
  for (int i = 0; i < queued + kUsers; ++i) {
    loop.Post(SubmitOf(i), [](const absl::StatusOr<tp::loop::Answer>&) {});
    if (i % 256 == 255) TurnUntilQuiet(loop, now);
  }
  TurnUntilQuiet(loop, now);
  const int64_t bytes = (ResidentBytes() - before) / (queued + kUsers) - kSpecBytes;

  const tp::plan::PlannerCounters counted = loop.planner().counters();
  std::vector<double> turns_us;
  for (int i = 0; i < releases; ++i) {
    const std::string user = UserOf(i * 7);
    now += absl::Seconds(1);
    loop.Post(tp::loop::AttemptObserved{sink.keys.at(user), Ended(sink.nonces.at(user))});
    const std::string key = sink.keys.at(user);
    const double start_us = ProcessorUs();
    const auto txn = loop.Turn(now);
    turns_us.push_back(ProcessorUs() - start_us);
    if (txn) loop.Committed();
    TurnUntilQuiet(loop, now);
    if (sink.keys.at(user) == key) {
      fmt::print(stderr, "nothing of {} started after release {}\n", user, i);
      return 1;
    }
  }
  std::sort(turns_us.begin(), turns_us.end());
  const auto at = [&](double part) {
    return turns_us[std::min(turns_us.size() - 1, static_cast<size_t>(part * static_cast<double>(turns_us.size())))];
  };
  const tp::plan::PlannerCounters& after = loop.planner().counters();
  fmt::print(
      R"({{"queued":{},"releases":{},"p50_us":{:.1f},"p99_us":{:.1f},"max_us":{:.1f},"evaluations":{},"woken":{},"bytes_a_step":{}}})"
      "\n",
      queued, releases, at(0.5), at(0.99), turns_us.back(), after.evaluations - counted.evaluations,
      after.woken - counted.woken, bytes);
  return 0;
}
