#include "backends/driver/driver.h"

#include <condition_variable>
#include <deque>
#include <set>
#include <stdexcept>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/time/clock.h"
#include "backends/fake/fake_backend.h"

namespace tp::driver {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr absl::Duration kPatience = absl::Seconds(30);

AttemptTarget Target(const std::string& key) { return {key, "nonce", "/storage/" + key, {1}}; }

LaunchSpec Spec(const std::string& key, const std::string& program = "hold") {
  LaunchSpec spec;
  spec.key = key;
  spec.nonce = "nonce";
  spec.argv = {"program"};
  RankLaunch rank;
  rank.env[fake::kProgramVariable] = program;
  spec.ranks = {rank};
  return spec;
}

// What arrives at the loop.
class Inbox {
 public:
  DriverCallbacks Callbacks() {
    return {.effect_answered =
                [this](int64_t id, loop::EffectResult result) {
                  const std::lock_guard lock(mutex_);
                  answers_.emplace_back(id, std::move(result));
                  changed_.notify_all();
                },
            .attempt_observed =
                [this](const std::string& key, Observation observation) {
                  const std::lock_guard lock(mutex_);
                  observations_[key].push_back(std::move(observation));
                  changed_.notify_all();
                }};
  }

  template <typename Condition>
  bool Await(Condition condition) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, absl::ToChronoNanoseconds(kPatience), condition);
  }

  loop::EffectResult AwaitAnswer(int64_t id) {
    const auto find = [&] {
      return std::find_if(answers_.begin(), answers_.end(), [id](const auto& answer) { return answer.first == id; });
    };
    EXPECT_TRUE(Await([&] { return find() != answers_.end(); })) << "no answer to " << id;
    const std::lock_guard lock(mutex_);
    return find() == answers_.end() ? loop::EffectResult(absl::UnknownError("none")) : find()->second;
  }

  Observation AwaitObservation(const std::string& key, const std::function<bool(const Observation&)>& wanted) {
    size_t next = 0;
    const auto seen = [&] {
      const std::vector<Observation>& all = observations_[key];
      while (next < all.size() && !wanted(all[next])) ++next;
      return next < all.size();
    };
    EXPECT_TRUE(Await(seen)) << key;
    const std::lock_guard lock(mutex_);
    return next < observations_[key].size() ? observations_[key][next] : Observation(Unknown{"none"});
  }

  std::vector<int64_t> AnswerOrder() {
    const std::lock_guard lock(mutex_);
    std::vector<int64_t> order;
    for (const auto& [id, result] : answers_) order.push_back(id);
    return order;
  }

  size_t observations(const std::string& key) {
    const std::lock_guard lock(mutex_);
    return observations_[key].size();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::pair<int64_t, loop::EffectResult>> answers_;
  std::map<std::string, std::vector<Observation>> observations_;
};

// A backend whose calls can be held up, made to throw, and are checked to keep the interface's rules.
class TestBackend : public Backend {
 public:
  ~TestBackend() override { ReleaseAll(); }

  Capabilities capabilities() const override { return {}; }
  absl::Status Validate(const LaunchSpec&) const override { return absl::OkStatus(); }
  std::string Render(const LaunchSpec&) const override { return ""; }
  LaunchResult Launch(const LaunchSpec& spec, absl::Time) override {
    Enter("launch", spec.key);
    return LaunchAccepted{};
  }
  FenceResult Fence(const AttemptTarget& target, absl::Time) override {
    Enter("fence", target.key);
    return FenceWon{};
  }
  absl::Status Stop(const AttemptTarget& target, StopLevel, absl::Time) override {
    Enter("stop", target.key);
    return absl::OkStatus();
  }
  absl::Status Remove(const AttemptTarget& target, absl::Time) override {
    Enter("remove", target.key);
    return absl::OkStatus();
  }
  std::vector<Observation> Observe(const std::vector<AttemptTarget>& targets, absl::Time deadline) override {
    std::vector<Observation> seen;
    for (const AttemptTarget& target : targets) {
      if (targets.size() > 1 && absl::Now() >= deadline) {
        seen.emplace_back(Unknown{"no time is left"});
        continue;
      }
      Enter("observe", target.key, targets.size() > 1 ? deadline : absl::InfiniteFuture());
      if (target.key == "throws") throw std::runtime_error("a fault");
      const std::lock_guard lock(mutex_);
      seen.push_back(truth_.contains(target.key) ? truth_[target.key] : Observation(Absent{}));
    }
    if (drops_one_) seen.pop_back();
    return seen;
  }
  absl::StatusOr<std::vector<InventoryItem>> Inventory(absl::Time) override { return std::vector<InventoryItem>(); }
  void SetWake(std::function<void(const std::string& key)> wake) override { wake_ = std::move(wake); }

  void Hold(const std::string& key) {
    const std::lock_guard lock(mutex_);
    held_.insert(key);
  }
  void Release(const std::string& key) {
    const std::lock_guard lock(mutex_);
    held_.erase(key);
    changed_.notify_all();
  }
  void ReleaseAll() {
    const std::lock_guard lock(mutex_);
    held_.clear();
    changed_.notify_all();
  }
  void AwaitInside(const std::string& key) {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, absl::ToChronoNanoseconds(kPatience), [&] { return inside_.contains(key); }));
  }
  void AwaitEmpty() {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, absl::ToChronoNanoseconds(kPatience), [&] { return inside_.empty(); }));
  }
  void SetTruth(const std::string& key, Observation truth) {
    {
      const std::lock_guard lock(mutex_);
      truth_[key] = std::move(truth);
    }
    wake_(key);
  }
  void DropOne() { drops_one_ = true; }
  void Wake(const std::string& key) { wake_(key); }
  std::vector<std::string> Calls() {
    const std::lock_guard lock(mutex_);
    return calls_;
  }
  int Looks(const std::string& key) {
    const std::lock_guard lock(mutex_);
    return looks_[key];
  }

 private:
  // `alone_until`: no other call for the key may come before then.
  void Enter(const std::string& call, const std::string& key, absl::Time alone_until = absl::InfiniteFuture()) {
    std::unique_lock lock(mutex_);
    const auto [first, last] = inside_.equal_range(key);
    for (auto other = first; other != last; ++other) {
      EXPECT_LT(other->second, absl::Now()) << "two calls at once for " << key;
    }
    const auto self = inside_.emplace(key, alone_until);
    if (call == "observe") {
      ++looks_[key];
    } else {
      calls_.push_back(call);
    }
    changed_.notify_all();
    changed_.wait(lock, [&] { return !held_.contains(key); });
    inside_.erase(self);
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::set<std::string> held_;
  std::multimap<std::string, absl::Time> inside_;
  std::map<std::string, Observation> truth_;
  std::map<std::string, int> looks_;
  std::vector<std::string> calls_;
  std::atomic<bool> drops_one_ = false;
  std::function<void(const std::string& key)> wake_;
};

// Intervals so long that only wakes and deadlines act.
DriverOptions Patient() {
  DriverOptions options;
  options.interval = absl::Hours(1);
  options.eager_interval = absl::Hours(1);
  options.unknown_interval_max = absl::Hours(1);
  return options;
}

DriverOptions Hasty() {
  DriverOptions options = Patient();
  options.launch_limit = absl::Milliseconds(50);
  options.order_limit = absl::Milliseconds(50);
  options.observe_limit = absl::Milliseconds(50);
  options.overrun = absl::Milliseconds(10);
  return options;
}

template <typename Alternative>
bool Is(const loop::EffectResult& result) {
  const LaunchResult* launch = std::get_if<LaunchResult>(&result);
  return launch != nullptr && std::holds_alternative<Alternative>(*launch);
}

class DriverTest : public ::testing::Test {
 protected:
  void Begin(const DriverOptions& options) {
    driver_ = std::make_unique<Driver>(
        std::map<std::string, std::shared_ptr<Backend>>{{"one", one_}, {"other", other_}}, inbox_.Callbacks(), options);
  }
  // Tried again where a busy machine let a healthy call overrun.
  bool IsServed(const std::string& backend, const std::string& key) {
    const absl::Time limit = absl::Now() + kPatience;
    for (int64_t id = next_id_; absl::Now() < limit; id = ++next_id_) {
      driver_->Launch(id, backend, Spec(key), Target(key));
      if (Is<LaunchAccepted>(inbox_.AwaitAnswer(id))) return true;
    }
    return false;
  }
  void TearDown() override {
    one_->ReleaseAll();
    other_->ReleaseAll();
    if (driver_) driver_->Shutdown(absl::Now() + kPatience);
  }

  std::shared_ptr<TestBackend> one_ = std::make_shared<TestBackend>();
  std::shared_ptr<TestBackend> other_ = std::make_shared<TestBackend>();
  Inbox inbox_;
  std::unique_ptr<Driver> driver_;
  int64_t next_id_ = 1000;
};

TEST_F(DriverTest, CallsForOneKeyRunOneAtATimeAndInOrder) {
  Begin(Patient());
  one_->Hold("a");
  driver_->Launch(1, "one", Spec("a"), Target("a"));
  driver_->Signal(2, "one", Target("a"), StopLevel::kTerm);
  driver_->Fence(3, "one", Target("a"));
  driver_->Remove(4, "one", Target("a"));
  one_->AwaitInside("a");
  EXPECT_TRUE(inbox_.AnswerOrder().empty());
  one_->ReleaseAll();
  inbox_.AwaitAnswer(4);
  EXPECT_THAT(inbox_.AnswerOrder(), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(one_->Calls(), ElementsAre("launch", "stop", "fence", "remove"));
}

TEST_F(DriverTest, CallsForDifferentKeysDoNotWaitForEachOther) {
  Begin(Patient());
  for (const char* key : {"a", "b", "c"}) {
    one_->Hold(key);
    driver_->Launch(1, "one", Spec(key), Target(key));
    one_->AwaitInside(key);
  }
  driver_->Launch(2, "one", Spec("d"), Target("d"));
  EXPECT_TRUE(Is<LaunchAccepted>(inbox_.AwaitAnswer(2)));
}

TEST_F(DriverTest, AHungCallIsAnsweredForAndHoldsUpNobodyElse) {
  Begin(Hasty());
  // More hung calls than there are threads.
  for (int i = 0; i < 8; ++i) {
    const std::string key = "hung-" + std::to_string(i);
    one_->Hold(key);
    driver_->Launch(i, "one", Spec(key), Target(key));
  }
  EXPECT_TRUE(IsServed("other", "x"));
  for (int i = 0; i < 8; ++i) EXPECT_TRUE(Is<LaunchIndeterminate>(inbox_.AwaitAnswer(i)));
  EXPECT_TRUE(IsServed("one", "y"));
}

TEST_F(DriverTest, WhatWaitsBehindAHungCallIsAnsweredAndNeverSent) {
  Begin(Hasty());
  one_->Hold("a");
  driver_->Signal(1, "one", Target("a"), StopLevel::kTerm);
  driver_->Fence(2, "one", Target("a"));
  driver_->Launch(3, "one", Spec("a"), Target("a"));
  EXPECT_FALSE(std::get<absl::Status>(inbox_.AwaitAnswer(1)).ok());
  EXPECT_TRUE(std::holds_alternative<FenceFailed>(std::get<FenceResult>(inbox_.AwaitAnswer(2))));
  EXPECT_TRUE(Is<LaunchRefused>(inbox_.AwaitAnswer(3)));
  driver_->Remove(4, "one", Target("a"));
  EXPECT_FALSE(std::get<absl::Status>(inbox_.AwaitAnswer(4)).ok());
  EXPECT_THAT(one_->Calls(), ElementsAre("stop"));

  one_->ReleaseAll();
  one_->AwaitEmpty();
  // The late result is dropped, and the key is served again.
  int64_t id = 5;
  for (;; ++id) {
    driver_->Remove(id, "one", Target("a"));
    if (std::get<absl::Status>(inbox_.AwaitAnswer(id)).ok()) break;
  }
  std::vector<int64_t> order = inbox_.AnswerOrder();
  EXPECT_EQ(std::count(order.begin(), order.end(), 1), 1);
}

TEST_F(DriverTest, AHungObservationIsUnknownAndOthersAreSeen) {
  DriverOptions options = Hasty();
  options.unknown_interval_max = absl::Milliseconds(1);
  Begin(options);
  one_->Hold("hung");
  driver_->Track("one", Target("hung"));
  one_->AwaitInside("hung");
  driver_->Track("one", Target("seen"));
  const Observation unknown =
      inbox_.AwaitObservation("hung", [](const Observation& seen) { return std::holds_alternative<Unknown>(seen); });
  EXPECT_THAT(std::get<Unknown>(unknown).why, HasSubstr("did not answer in time"));
  inbox_.AwaitObservation("seen", [](const Observation& seen) { return std::holds_alternative<Absent>(seen); });
}

// As where the directory of one attempt is on storage that hangs.
TEST_F(DriverTest, ThoseThatWereLookedAtTogetherWithOneThatHangsAreSeen) {
  DriverOptions options = Hasty();
  options.observe_threads = 1;
  options.unknown_interval_max = absl::Milliseconds(1);
  Begin(options);
  one_->Hold("first");
  driver_->Track("one", Target("first"));
  one_->AwaitInside("first");
  // Due by the time that the one thread is free, so that one look takes all of them; keys are looked at in their order.
  one_->Hold("hung");
  for (const char* key : {"hung", "in", "its", "wake"}) driver_->Track("one", Target(key));
  absl::SleepFor(absl::Milliseconds(25));
  one_->Release("first");
  for (const char* key : {"in", "its", "wake"}) {
    inbox_.AwaitObservation(key, [](const Observation& seen) { return std::holds_alternative<Absent>(seen); });
  }
  inbox_.AwaitObservation("hung", [](const Observation& seen) { return std::holds_alternative<Unknown>(seen); });
  one_->ReleaseAll();
  inbox_.AwaitObservation("hung", [](const Observation& seen) { return std::holds_alternative<Absent>(seen); });
}

TEST_F(DriverTest, AWakeIsLookedAtOnceAndChangesAreAlwaysPosted) {
  Begin(Patient());
  driver_->Track("one", Target("a"));
  inbox_.AwaitObservation("a", [](const Observation& seen) { return std::holds_alternative<Absent>(seen); });
  for (int i = 0; i < 20; ++i) {
    Present present;
    present.reason = std::to_string(i);
    one_->SetTruth("a", present);
    inbox_.AwaitObservation("a", [&](const Observation& seen) { return seen == Observation(present); });
  }
}

TEST_F(DriverTest, EqualObservationsAreThinnedOut) {
  DriverOptions options = Patient();
  options.repeat_equal_after = absl::Hours(1);
  Begin(options);
  driver_->Track("one", Target("a"));
  inbox_.AwaitObservation("a", [](const Observation&) { return true; });
  for (int look = 2; look < 20; ++look) {
    one_->Wake("a");
    while (one_->Looks("a") < look) std::this_thread::yield();
  }
  EXPECT_EQ(inbox_.observations("a"), 1u);
}

TEST_F(DriverTest, EqualObservationsAreRepeatedAfterAWhile) {
  DriverOptions options;
  options.eager_interval = absl::Milliseconds(1);
  options.repeat_equal_after = absl::Milliseconds(5);
  Begin(options);
  driver_->Track("one", Target("a"));
  EXPECT_TRUE([&] {
    const absl::Time limit = absl::Now() + kPatience;
    while (inbox_.observations("a") < 5 && absl::Now() < limit) std::this_thread::yield();
    return inbox_.observations("a") >= 5;
  }());
  EXPECT_GT(one_->Looks("a"), 5);
}

TEST_F(DriverTest, AThrowingTargetHarmsNoOther) {
  Begin(Patient());
  driver_->Track("one", Target("throws"));
  driver_->Track("one", Target("fine"));
  const Observation unknown = inbox_.AwaitObservation("throws", [](const Observation&) { return true; });
  ASSERT_TRUE(std::holds_alternative<Unknown>(unknown));
  EXPECT_THAT(std::get<Unknown>(unknown).why, HasSubstr("a fault"));
  EXPECT_TRUE(std::holds_alternative<Absent>(inbox_.AwaitObservation("fine", [](const Observation&) { return true; })));
}

TEST_F(DriverTest, TooFewAnswersAreNoAnswer) {
  one_->DropOne();
  Begin(Patient());
  driver_->Track("one", Target("a"));
  EXPECT_TRUE(std::holds_alternative<Unknown>(inbox_.AwaitObservation("a", [](const Observation&) { return true; })));
}

TEST_F(DriverTest, AnUntrackedAttemptIsLookedAtNoMore) {
  DriverOptions options;
  options.eager_interval = absl::Milliseconds(1);
  Begin(options);
  driver_->Track("one", Target("a"));
  inbox_.AwaitObservation("a", [](const Observation&) { return true; });
  driver_->Untrack("a");
  one_->AwaitEmpty();
  driver_->Track("one", Target("b"));
  const int looks = one_->Looks("a");
  one_->Wake("a");
  while (one_->Looks("b") < 20) std::this_thread::yield();
  EXPECT_LE(one_->Looks("a"), looks + 1) << "at most the look that was under way";
}

TEST_F(DriverTest, OneLookIsOneObservation) {
  DriverOptions options;
  options.eager_interval = absl::Milliseconds(1);
  options.repeat_equal_after = absl::ZeroDuration();
  Begin(options);
  driver_->Look("one", Target("a"));
  inbox_.AwaitObservation("a", [](const Observation& seen) { return std::holds_alternative<Absent>(seen); });
  one_->Wake("a");
  driver_->Track("one", Target("b"));
  while (one_->Looks("b") < 20) std::this_thread::yield();
  EXPECT_EQ(one_->Looks("a"), 1);
  EXPECT_EQ(inbox_.observations("a"), 1u);
  // The same that was seen before is told again.
  driver_->Look("one", Target("a"));
  EXPECT_TRUE(inbox_.Await([&] { return one_->Looks("a") == 2; }));
}

TEST_F(DriverTest, ALookThatHangsIsUnknownAndEndsThere) {
  DriverOptions options = Hasty();
  options.unknown_interval_max = absl::Milliseconds(1);
  Begin(options);
  one_->Hold("a");
  driver_->Look("one", Target("a"));
  inbox_.AwaitObservation("a", [](const Observation& seen) { return std::holds_alternative<Unknown>(seen); });
  one_->ReleaseAll();
  one_->AwaitEmpty();
  driver_->Track("one", Target("b"));
  inbox_.AwaitObservation("b", [](const Observation&) { return true; });
  EXPECT_EQ(one_->Looks("a"), 1);
  driver_->Look("one", Target("a"));
  inbox_.AwaitObservation("a", [](const Observation& seen) { return std::holds_alternative<Absent>(seen); });
}

TEST_F(DriverTest, ABackendThatIsNoLongerConfiguredSaysSo) {
  Begin(Patient());
  driver_->Track("gone", Target("a"));
  const Observation seen = inbox_.AwaitObservation("a", [](const Observation&) { return true; });
  ASSERT_TRUE(std::holds_alternative<Unknown>(seen));
  EXPECT_THAT(std::get<Unknown>(seen).why, HasSubstr("'gone' is not configured"));
  driver_->Launch(1, "gone", Spec("a"), Target("a"));
  EXPECT_TRUE(Is<LaunchRefused>(inbox_.AwaitAnswer(1)));
}

TEST_F(DriverTest, ShutdownWaitsForWhatIsUnderWayAndThenIsSilent) {
  Begin(Patient());
  one_->Hold("a");
  driver_->Launch(1, "one", Spec("a"), Target("a"));
  driver_->Remove(2, "one", Target("a"));
  one_->AwaitInside("a");
  std::thread releasing([&] { one_->ReleaseAll(); });
  driver_->Shutdown(absl::Now() + kPatience);
  releasing.join();
  const std::vector<int64_t> answered = inbox_.AnswerOrder();
  ASSERT_FALSE(answered.empty());
  EXPECT_EQ(answered.front(), 1);
  driver_->Launch(3, "one", Spec("b"), Target("b"));
  driver_->Track("one", Target("b"));
  EXPECT_EQ(inbox_.AnswerOrder(), answered);
  EXPECT_EQ(inbox_.observations("b"), 0u);
}

TEST_F(DriverTest, ShutdownLeavesAHungCallToItself) {
  Begin(Patient());
  one_->Hold("a");
  driver_->Launch(1, "one", Spec("a"), Target("a"));
  one_->AwaitInside("a");
  driver_->Shutdown(absl::Now() + absl::Milliseconds(50));
  driver_.reset();
  one_->ReleaseAll();
  one_->AwaitEmpty();
  EXPECT_TRUE(inbox_.AnswerOrder().empty());
}

TEST_F(DriverTest, CarriesAFakeAttemptFromLaunchToEnd) {
  const auto engine = std::make_shared<fake::FakeBackend>([] { return absl::Now(); });
  Driver driver({{"fake", engine}}, inbox_.Callbacks(), Patient());
  driver.Track("fake", Target("k"));
  driver.Launch(1, "fake", Spec("k"), Target("k"));
  EXPECT_TRUE(Is<LaunchAccepted>(inbox_.AwaitAnswer(1)));
  inbox_.AwaitObservation("k", [](const Observation& seen) {
    const Present* present = std::get_if<Present>(&seen);
    return present != nullptr && present->ranks[0].started.has_value();
  });
  driver.Signal(2, "fake", Target("k"), StopLevel::kTerm);
  EXPECT_TRUE(std::get<absl::Status>(inbox_.AwaitAnswer(2)).ok());
  inbox_.AwaitObservation("k", [](const Observation& seen) {
    const Present* present = std::get_if<Present>(&seen);
    return present != nullptr && present->freed;
  });
  driver.Shutdown(absl::Now() + kPatience);
}

}  // namespace
}  // namespace tp::driver
