// The two threads around the loop. No timing is asserted: tests wait for what must come.
#include <atomic>
#include <future>

#include "harness.h"
#include "loop/loop_thread.h"

namespace tp::loop::test {
namespace {

class Threads : public ::testing::Test {
 protected:
  void Run(store::Store& store, ThreadHooks hooks) {
    if (!hooks.fatal) hooks.fatal = [](const absl::Status& status) { FAIL() << status; };
    thread_ = std::make_unique<LoopThread>(*h_.loop, store, std::move(hooks));
    thread_->Start();
  }

  std::future<absl::StatusOr<Answer>> Submit(int i) {
    auto promise = std::make_shared<std::promise<absl::StatusOr<Answer>>>();
    thread_->Post(Command{{"ada", store::Role::kUser}, "r" + std::to_string(i), "Submit", "sha", Harness::Job()},
                  [promise](absl::StatusOr<Answer> answer) { promise->set_value(std::move(answer)); });
    return promise->get_future();
  }

  Harness h_;
  std::unique_ptr<LoopThread> thread_;
};

TEST_F(Threads, EveryAcknowledgedSubmitIsInTheStore) {
  Run(*h_.store, {});
  std::vector<std::future<absl::StatusOr<Answer>>> futures;
  for (int i = 0; i < 500; ++i) futures.push_back(Submit(i));
  std::set<int64_t> runs;
  for (auto& future : futures) {
    const auto answer = future.get();
    ASSERT_TRUE(answer.ok()) << answer.status();
    EXPECT_TRUE(h_.store->GetRun(answer->run).ok());
    runs.insert(answer->run);
  }
  EXPECT_EQ(runs.size(), 500u);
  EXPECT_LE(thread_->Commits(), 501);
  thread_->Stop();
}

TEST_F(Threads, ManyPostersAtOnce) {
  Run(*h_.store, {});
  std::vector<std::thread> posters;
  std::atomic<int> good = 0;
  for (int t = 0; t < 4; ++t) {
    posters.emplace_back([&, t] {
      for (int i = 0; i < 100; ++i) good += Submit(t * 100 + i).get().ok();
    });
  }
  for (std::thread& poster : posters) poster.join();
  EXPECT_EQ(good, 400);
}

// Somebody sets the clock an hour ahead: what is shown and counted from a moment goes along.
TEST_F(Threads, AClockThatIsSetIsNoticed) {
  std::atomic<int64_t> ahead_s = 0;
  ThreadHooks hooks;
  hooks.wall_clock = [&] { return absl::Now() + absl::Seconds(ahead_s.load()); };
  Run(*h_.store, std::move(hooks));
  ASSERT_TRUE(Submit(1).get().ok());
  ahead_s = 3600;
  ASSERT_TRUE(Submit(2).get().ok());
  thread_->Stop();
  const auto& attempt = h_.loop->runs().at(1).steps[0].attempt;
  ASSERT_TRUE(attempt);
  EXPECT_GT(*attempt->sight.last_seen, attempt->created_at + absl::Minutes(59));
}

// A disk that is full for a while.
class FullStore : public store::Store {
 public:
  FullStore(store::Store& inner, int failures) : inner_(inner), failures_(failures) {}
  absl::Status Commit(const store::Txn& txn) override {
    if (failures_-- > 0) return absl::ResourceExhaustedError("disk full");
    return inner_.Commit(txn);
  }
  absl::StatusOr<store::Loaded> Load() override { return inner_.Load(); }
  absl::Status BeginEpoch(int64_t epoch, int64_t next_run) override { return inner_.BeginEpoch(epoch, next_run); }

 private:
  store::Store& inner_;
  int failures_;
};

TEST_F(Threads, AFullDiskIsWaitedForAndLosesNothing) {
  FullStore full(*h_.store, 3);
  std::atomic<int> called = 0;
  ThreadHooks hooks;
  hooks.disk_full = [&] { ++called; };
  Run(full, std::move(hooks));
  EXPECT_TRUE(Submit(1).get().ok());
  EXPECT_EQ(called, 3);
}

// A commit that does not return until it is let go.
class HungStore : public store::Store {
 public:
  explicit HungStore(store::Store& inner) : inner_(inner) {}
  absl::Status Commit(const store::Txn& txn) override {
    if (!std::exchange(entered_once_, true)) entered_.set_value();
    released_.wait();
    return inner_.Commit(txn);
  }
  absl::StatusOr<store::Loaded> Load() override { return inner_.Load(); }
  absl::Status BeginEpoch(int64_t epoch, int64_t next_run) override { return inner_.BeginEpoch(epoch, next_run); }
  void AwaitCommit() { entered_.get_future().wait(); }
  void Release() { release_.set_value(); }

 private:
  store::Store& inner_;
  bool entered_once_ = false;
  std::promise<void> entered_;
  std::promise<void> release_;
  std::shared_future<void> released_ = release_.get_future().share();
};

TEST_F(Threads, AHungCommitIsAStallHoweverBusyTheLoopIs) {
  HungStore hung(*h_.store);
  Run(hung, {});
  auto answer = Submit(1);
  const absl::Time deadline = absl::Now() + absl::Seconds(60);
  while (thread_->Stalled() < absl::Milliseconds(100) && absl::Now() < deadline) {
    thread_->Post(AttemptObserved{"tp-test-e1-9-s0-a1", Unknown{"nobody knows it"}});
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // so that the loop keeps up
  }
  EXPECT_GE(thread_->Stalled(), absl::Milliseconds(100));
  hung.Release();
  EXPECT_TRUE(answer.get().ok());
  while (thread_->Stalled() > absl::Milliseconds(50) && absl::Now() < deadline) std::this_thread::yield();
  EXPECT_LE(thread_->Stalled(), absl::Milliseconds(50));
}

TEST_F(Threads, SightsDoNotPileUpBehindAHungCommit) {
  HungStore hung(*h_.store);
  Run(hung, {});
  auto first = Submit(1);
  hung.AwaitCommit();
  auto second = Submit(2);  // decided, it waits for the writer, and nothing more is taken in
  for (int i = 0; i < 5000; ++i) {
    thread_->Post(AttemptObserved{"tp-test-e1-9-s0-a1", Present{}});
    if (i == 2500) thread_->Post(AttemptObserved{"tp-test-e1-9-s0-a1", Unknown{"no answer"}});
  }
  hung.Release();
  EXPECT_TRUE(first.get().ok() && second.get().ok());
  thread_->Stop();
  EXPECT_LT(h_.loop->counters().messages, 1000);
}

TEST_F(Threads, EveryPostIsAnsweredWhateverStopCutsOff) {
  Run(*h_.store, {});
  std::vector<std::future<absl::StatusOr<Answer>>> futures;
  for (int i = 0; i < 200; ++i) futures.push_back(Submit(i));
  thread_->Stop();
  thread_->Stop();
  futures.push_back(Submit(1000));
  int64_t acknowledged = 0;
  for (auto& future : futures) {
    const auto answer = future.get();
    acknowledged += answer.ok();
    EXPECT_TRUE(answer.ok() || absl::IsUnavailable(answer.status())) << answer.status();
  }
  EXPECT_EQ(static_cast<int64_t>(h_.store->Load().value().runs.size()), acknowledged);
}

}  // namespace
}  // namespace tp::loop::test
