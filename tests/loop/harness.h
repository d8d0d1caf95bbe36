// The loop over the in-memory store and a sink that only writes down what leaves.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "loop/loop.h"
#include "store/memory_store.h"

namespace tp::loop::test {

struct Sent {
  std::string what;  // launch, fence, signal, remove, track, untrack, look, look at cards
  int64_t id = 0;
  std::string key;
  StopLevel level = StopLevel::kTerm;
  std::vector<RankHost> hosts = {};  // of track
};

class RecordingSink : public EffectSink {
 public:
  void Launch(int64_t id, const std::string&, const LaunchSpec& spec, const AttemptTarget&) override {
    sent.push_back({"launch", id, spec.key});
  }
  void Fence(int64_t id, const std::string&, const AttemptTarget& target) override {
    sent.push_back({"fence", id, target.key});
  }
  void Signal(int64_t id, const std::string&, const AttemptTarget& target, StopLevel level) override {
    sent.push_back({"signal", id, target.key, level});
  }
  void Remove(int64_t id, const std::string&, const AttemptTarget& target) override {
    sent.push_back({"remove", id, target.key});
  }
  void Track(const std::string&, const AttemptTarget& target) override {
    sent.push_back({"track", 0, target.key, StopLevel::kTerm, target.hosts});
  }
  void Untrack(const std::string& key) override { sent.push_back({"untrack", 0, key}); }
  void Look(const std::string&, const AttemptTarget& target) override { sent.push_back({"look", 0, target.key}); }

  void LookAtCards(const std::string& backend) override { sent.push_back({"look at cards", 0, backend}); }

  int Count(const std::string& what) const {
    int count = 0;
    for (const Sent& one : sent) count += one.what == what;
    return count;
  }
  const Sent& Last(const std::string& what) const {
    for (auto one = sent.rbegin(); one != sent.rend(); ++one) {
      if (one->what == what) return *one;
    }
    ADD_FAILURE() << "no " << what << " was sent";
    static const Sent kNone;
    return kNone;
  }

  std::vector<Sent> sent;
};

inline std::shared_ptr<const core::Registry> OneSeries(int nodes = 2, bool virtual_cards = true) {
  auto registry = std::make_shared<core::Registry>();
  core::Series h200;
  h200.name = "h200";
  h200.gpus_per_node = 8;
  h200.virtual_cards = virtual_cards;
  h200.executor = "gpu/default";
  for (int i = 1; i <= nodes; ++i) h200.nodes.push_back({"n" + std::to_string(i), "127.0.0.1"});
  core::Profile profile;
  profile.name = "h200";
  profile.series = "h200";
  profile.default_total = 8;
  registry->series["h200"] = h200;
  registry->profiles["h200"] = profile;
  for (const char* provider : {"cpu", "gpu"}) {
    core::Executor executor;
    executor.provider = provider;
    executor.profile = "default";
    executor.name = std::string(provider) + "/default";
    executor.backend = "local";
    executor.config_json = "{}";
    registry->executors[executor.name] = executor;
  }
  return registry;
}

class Harness {
 public:
  Harness() : Harness(std::make_unique<store::MemoryStore>()) {}
  explicit Harness(std::unique_ptr<store::MemoryStore> stored) : store(std::move(stored)) { Restart(); }

  // tpd dies and starts again over what was committed.
  void Restart() {
    Settings settings;
    settings.deployment = {"test", 1};
    settings.layout.storage_root = "/data";
    settings.layout.log_max_bytes = 1 << 20;
    settings.layout.heartbeat_ms = 1000;
    settings.table = table;
    settings.policy = policy;
    loop = std::make_unique<Loop>(settings, store->Load().value(), OneSeries(2, virtual_cards), sink,
                                  [this] { return "nonce-" + std::to_string(++nonces_); });
    loop->Recover();
  }

  // Turns and commits until nothing is left to do at this moment.
  void Settle() {
    for (int i = 0; i < 100; ++i) {
      auto txn = loop->Turn(now);
      if (txn) {
        ASSERT_TRUE(store->Commit(*txn).ok());
        loop->Committed();
      } else if (!loop->HasMessages()) {
        return;
      }
    }
    FAIL() << "the loop does not come to rest";
  }

  absl::StatusOr<Answer> Do(Action action, std::string request_id = "", Principal who = {"ada", store::Role::kUser}) {
    absl::StatusOr<Answer> result = absl::InternalError("no reply");
    if (request_id.empty()) request_id = "r" + std::to_string(++requests_);
    loop->Post(Command{who, request_id, "Test", "sha", std::move(action)},
               [&](absl::StatusOr<Answer> answer) { result = std::move(answer); });
    Settle();
    return result;
  }

  std::vector<absl::StatusOr<Answer>> DoTogether(std::vector<Command> commands) {
    std::vector<absl::StatusOr<Answer>> results;
    loop->Post(std::move(commands), [&](std::vector<absl::StatusOr<Answer>> answers) { results = std::move(answers); });
    Settle();
    return results;
  }

  absl::StatusOr<Answer> Preview(SubmitRun submit) {
    absl::StatusOr<Answer> result = absl::InternalError("no reply");
    loop->Post(DryRun{{"ada", store::Role::kUser}, std::move(submit)},
               [&](absl::StatusOr<Answer> answer) { result = std::move(answer); });
    Settle();
    return result;
  }

  static SubmitRun Job(const std::string& profile = "h200:8") {
    SubmitRun submit;
    submit.name = "train";
    submit.project = "vision";
    core::StepSpec step;
    step.name = "train";
    step.argv = {"python3", "train.py"};
    step.profiles = {profile};
    submit.steps = {step};
    return submit;
  }

  int64_t Submit(const std::string& profile = "h200:8") {
    auto answer = Do(Job(profile));
    EXPECT_TRUE(answer.ok()) << answer.status();
    return answer.ok() ? answer->run : 0;
  }

  void Answer_(EffectResult result, const std::string& what) {
    loop->Post(EffectAnswered{sink.Last(what).id, std::move(result)});
    Settle();
  }

  void Observe(const std::string& key, Observation observation) {
    loop->Post(AttemptObserved{key, std::move(observation)});
    Settle();
  }

  static Observation UpOrOver(int ranks, std::optional<int> code) {
    Present present;
    present.claim = Claim::kThisLaunch;
    present.phase = code ? EnginePhase::kEnded : EnginePhase::kActive;
    present.freed = code.has_value();
    for (int i = 0; i < ranks; ++i) {
      RankObservation rank;
      rank.rank = i;
      rank.tree = code ? Tree::kGone : Tree::kAlive;
      rank.started = StartRecord{"nonce", {"h", "b", 1'000'000, 1'800'000'000'000'000}};
      if (code) {
        rank.ended = EndRecord{};
        rank.ended->at = {"h", "b", 3'000'000, 1'800'000'002'000'000};
        rank.ended->code = *code;
      }
      present.ranks.push_back(rank);
    }
    return present;
  }

  core::JobState State(int64_t run) { return store->GetRun(run).value().steps.at(0).state; }

  absl::Time now = absl::FromUnixSeconds(1'800'000'000);
  RecordingSink sink;
  std::unique_ptr<store::MemoryStore> store;
  std::unique_ptr<Loop> loop;
  const core::Table* table = &core::ProductTable();  // of the next Restart
  core::Policy policy;                               // of the next Restart
  bool virtual_cards = true;                         // of the next Restart

 private:
  int nonces_ = 0;
  int requests_ = 0;
};

}  // namespace tp::loop::test
