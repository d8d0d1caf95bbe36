// What it costs to look at a long queue: reading it and putting it in order, the turns of the loop that a page
// of it, `tp why` and an estimate take, and the estimates themselves, which are made off the loop.
//
//   bench_queue DIRECTORY QUEUED [HOLDING]
//
// DIRECTORY is empty or not there. HOLDING jobs of one card hold all cards, with time limits; of QUEUED more,
// 500 users want 1 to 16 cards each. Prints one line of JSON.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "api/forecast.h"
#include "api/queue.h"
#include "loop/loop.h"
#include "plan/estimate.h"
#include "store/sqlite_reader.h"
#include "store/sqlite_store.h"

namespace {

constexpr int kUsers = 500;
constexpr int kSpecBytes = 1024;  // of argv and env
constexpr int kRepeats = 9;

class Sink : public tp::loop::EffectSink {
 public:
  void Launch(int64_t, const std::string&, const tp::LaunchSpec&, const tp::AttemptTarget&) override {}
  void Fence(int64_t, const std::string&, const tp::AttemptTarget&) override {}
  void Signal(int64_t, const std::string&, const tp::AttemptTarget&, tp::StopLevel) override {}
  void Remove(int64_t, const std::string&, const tp::AttemptTarget&) override {}
  void Track(const std::string&, const tp::AttemptTarget&) override {}
  void Untrack(const std::string&) override {}
  void Look(const std::string&, const tp::AttemptTarget&) override {}
};

std::shared_ptr<const tp::core::Registry> Cluster(int cards) {
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
  series.executor = series.executor_distributed = executor.name;
  for (int i = 0; i < cards / 8; ++i) series.nodes.push_back({fmt::format("node-{}", i), "127.0.0.1"});
  tp::core::Profile profile;
  profile.name = profile.series = series.name;
  registry->series[series.name] = std::move(series);
  registry->profiles["h200"] = profile;
  return registry;
}

tp::loop::Command SubmitOf(int i, int cards) {
  tp::core::StepSpec step;
  step.name = "main";
  step.argv = {"python3", "train.py", std::string(kSpecBytes / 2, 'a')};
  step.env = {{"CONFIG", std::string(kSpecBytes / 2, 'e')}};
  step.profiles = {fmt::format("h200:{}", cards)};
  step.time_limit = absl::Minutes(30 + i % 97);
  tp::loop::SubmitRun submit;
  submit.name = "train";
  submit.project = "bench";
  submit.steps = {std::move(step)};
  return {.who = {fmt::format("user-{:03}", i % kUsers), tp::store::Role::kUser},
          .request_id = fmt::format("r{}", i),
          .method = "Submit",
          .body_sha256 = "",
          .action = std::move(submit)};
}

double ProcessorMs() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) / 1e6;
}

double MedianMs(const std::function<void()>& call) {
  std::vector<double> times;
  for (int i = 0; i < kRepeats; ++i) {
    const double start = ProcessorMs();
    call();
    times.push_back(ProcessorMs() - start);
  }
  std::nth_element(times.begin(), times.begin() + kRepeats / 2, times.end());
  return times[kRepeats / 2];
}

void Require(const absl::Status& status) {
  if (status.ok()) return;
  fmt::print(stderr, "{}\n", status.ToString());
  std::exit(1);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    fmt::print(stderr, "usage: bench_queue DIRECTORY QUEUED [HOLDING]\n");
    return 2;
  }
  const int queued = std::atoi(argv[2]);
  const int holding = argc > 3 ? std::atoi(argv[3]) : 2048;
  std::filesystem::create_directories(argv[1]);
  const std::string path = std::string(argv[1]) + "/tpd.db";
  auto store = tp::store::SqliteStore::Open(path, nullptr);
  Require(store.status());
  const auto registry = Cluster(holding);
  tp::loop::Settings settings;
  settings.deployment = {"bench", 1};
  settings.layout.storage_root = "/data";
  Sink sink;
  int64_t nonce = 0;
  tp::loop::Loop loop(settings, {}, registry, sink, [&nonce] { return fmt::format("{:032x}", ++nonce); });
  absl::Time now = absl::FromUnixSeconds(1'800'000'000);
  const auto settle = [&] {
    do {
      if (const auto txn = loop.Turn(now)) {
        Require((*store)->Commit(*txn));
        loop.Committed();
      }
    } while (loop.HasMessages() || loop.NextTimer().value_or(absl::InfiniteFuture()) <= now);
  };
  static constexpr int kCards[] = {1, 2, 4, 8, 8, 16};
  for (int i = 0; i < holding + queued; ++i) {
    loop.Post(SubmitOf(i, i < holding ? 1 : kCards[i % 6]), [](const absl::StatusOr<tp::loop::Answer>&) {});
    if (i % 256 != 255) continue;
    now += absl::Seconds(1);
    settle();
  }
  settle();

  auto reader = tp::store::SqliteReader::Open(path);
  Require(reader.status());
  std::vector<tp::api::WaitingStep> queue;
  const double read_ms = MedianMs([&] {
    auto read = tp::api::ReadQueue(**reader, *registry, settings.policy, {}, now);
    Require(read.status());
    queue = *std::move(read);
  });
  std::set<int64_t> changed;
  for (size_t i = 0; i < 10 && i < queue.size(); ++i) changed.insert(queue[i].ref.run);
  const double renew_ms = MedianMs(
      [&] { Require(tp::api::RenewQueue(queue, changed, **reader, *registry, settings.policy, {}, now).status()); });
  const auto turn_ms = [&](const std::function<void()>& post) {
    return MedianMs([&] {
      post();
      settle();
    });
  };
  tp::loop::Query page;
  for (size_t i = 0; i < 32 && i < queue.size(); ++i) page.runs.push_back(queue[i].ref.run);
  const double page_ms = turn_ms([&] { loop.Post(page, [](const std::vector<tp::loop::LiveRun>&) {}); });
  const tp::loop::Query why{.runs = {queue.back().ref.run}, .explain = true};
  const double why_ms = turn_ms([&] { loop.Post(why, [](const std::vector<tp::loop::LiveRun>&) {}); });
  const tp::api::StepsToEstimate chosen = tp::api::ChooseSteps(queue);
  std::shared_ptr<const tp::plan::ForecastInput> input;
  const double gather_ms = turn_ms([&] {
    loop.Post(tp::loop::ForecastQuery{chosen.steps}, [&input](const auto& taken) {
      Require(taken.status());
      input = *taken;
    });
  });
  size_t estimated = 0;
  const double estimate_ms = MedianMs([&] {
    const auto estimates = tp::plan::EstimateStarts(*input);
    estimated = static_cast<size_t>(std::count_if(
        estimates.begin(), estimates.end(), [](const auto& entry) { return entry.second.starts_at.has_value(); }));
  });
  fmt::print(
      R"({{"queued":{},"holding":{},"read_ms":{:.2f},"renew_ms":{:.2f},"page_turn_ms":{:.2f},"why_turn_ms":{:.2f},"gather_turn_ms":{:.2f},"estimate_ms":{:.2f},"estimated":{}}})"
      "\n",
      queue.size(), input->holding.size(), read_ms, renew_ms, page_ms, why_ms, gather_ms, estimate_ms, estimated);
  return 0;
}
