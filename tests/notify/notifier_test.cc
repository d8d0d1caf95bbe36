// The notifier over a store in memory and receivers that do as they are told.
#include "notify/notifier.h"

#include <poll.h>

#include <chrono>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/time/clock.h"
#include "store/memory_store.h"
#include "tests/launch/temp_dir.h"
#include "tests/store/author.h"

namespace tp::notify {
namespace {

using core::JobState;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr auto kPatient = std::chrono::seconds(20);

// What every receiver was sent, and what it says. Thread-safe.
class Receiver {
 public:
  TryResult Take(const std::string& key, const Notification& notification, int stop_fd) {
    std::unique_lock lock(mutex_);
    taken_[notification.receiver].push_back(key + " " + notification.id.substr(notification.id.rfind('_') + 1));
    changed_.notify_all();
    if (hangs_.contains(key)) {
      lock.unlock();
      pollfd stop = {.fd = stop_fd, .events = POLLIN, .revents = 0};
      poll(&stop, 1, -1);
      return {.outcome = TryOutcome::kCancelled};
    }
    if (failures_ == 0) return {.outcome = TryOutcome::kTaken};
    --failures_;
    return {.outcome = TryOutcome::kFailed, .why = "it is down"};
  }

  void HangOn(const std::string& key) {
    const std::lock_guard lock(mutex_);
    hangs_.insert(key);
  }
  void Fail(int times) {
    const std::lock_guard lock(mutex_);
    failures_ = times;
  }

  // `KEY REVISION` of each try, once there are `count`.
  std::vector<std::string> Tries(const std::string& receiver, size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kPatient, [&] { return taken_[receiver].size() >= count; });
    return taken_[receiver];
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::vector<std::string>> taken_;
  std::set<std::string> hangs_;
  int failures_ = 0;
};

class FakeChannel final : public Channel {
 public:
  FakeChannel(Receiver& receiver, std::string key) : receiver_(receiver), key_(std::move(key)) {}
  TryResult Send(const Notification& notification, int stop_fd) override {
    return receiver_.Take(key_, notification, stop_fd);
  }

 private:
  Receiver& receiver_;
  const std::string key_;
};

Endpoint Named(const std::string& key) { return {.way = WebhookEndpoint{.url = "https://x", .key = key}, .on = {}}; }

class NotifierTest : public ::testing::Test {
 protected:
  ~NotifierTest() override { notifier_.reset(); }

  void Start(const Endpoints& endpoints) {
    NotifierOptions options;
    options.path = directory_.At("notify.db");
    options.deployment = "lab";
    options.now = absl::Now;
    options.make_channel = [this](const Endpoint& endpoint) -> std::unique_ptr<Channel> {
      return std::make_unique<FakeChannel>(receiver_, std::get<WebhookEndpoint>(endpoint.way).key);
    };
    auto started = Notifier::Start(std::move(options), store_);
    ASSERT_TRUE(started.ok()) << started.status();
    notifier_ = *std::move(started);
    notifier_->SetEndpoints(endpoints);
  }

  core::Step NewRun(const std::vector<std::string>& receivers) {
    const core::Run run = author_.NewRun("ana");
    store::Txn txn = author_.Take();
    for (const std::string& to : receivers) {
      txn.runs[0].notify.push_back({to, {core::NoticeEvent::kFailed, core::NoticeEvent::kPaused}});
    }
    const core::Step step = txn.steps[0];
    Commit(txn);
    return step;
  }

  core::Step Enter(const core::Step& step, JobState state) {
    core::Step entered = step;
    if (state == JobState::kFailed) entered.failure = core::Failure{core::FailureKind::kUserExit, "exit 1"};
    entered = author_.Enter(entered, state, store::At(1));
    Commit(author_.Take());
    return entered;
  }

  void Commit(const store::Txn& txn) {
    const absl::Status status = store_.Commit(txn);
    ASSERT_TRUE(status.ok()) << status;
    if (notifier_) notifier_->Wake();
  }

  // What is recorded of a receiver, once `done`.
  template <typename Done>
  ReceiverStatus StatusOf(const std::string& name, const Done& done) {
    const auto deadline = std::chrono::steady_clock::now() + kPatient;
    ReceiverStatus found;
    do {
      const auto all = notifier_->Status();
      if (!all.ok()) return found;
      for (const ReceiverStatus& status : *all) {
        if (status.name == name) found = status;
      }
      std::this_thread::yield();
    } while (!done(found) && std::chrono::steady_clock::now() < deadline);
    return found;
  }

  const testing::TempDir directory_;
  store::MemoryStore store_;
  store::Author author_;
  Receiver receiver_;
  std::unique_ptr<Notifier> notifier_;
};

TEST_F(NotifierTest, TellsWhatHappensFromTheFirstStartOn) {
  Enter(NewRun({"chat"}), JobState::kFailed);
  Start({{"chat", Named("k")}});
  Enter(NewRun({"chat"}), JobState::kFailed);
  Enter(NewRun({}), JobState::kFailed);
  Enter(NewRun({"chat"}), JobState::kSucceeded);
  Enter(NewRun({"chat"}), JobState::kPaused);
  EXPECT_THAT(receiver_.Tries("chat", 2), ElementsAre("k 2", "k 5"));
  const ReceiverStatus status = StatusOf("chat", [](const ReceiverStatus& s) { return s.delivered == 2; });
  EXPECT_EQ(status, (ReceiverStatus{.name = "chat", .configured = true, .delivered = 2, .last_error = ""}));
}

TEST_F(NotifierTest, AFailureIsTriedAgainBeforeTheNextOfItsRun) {
  Start({{"chat", Named("k")}});
  receiver_.Fail(1);
  const core::Step paused = Enter(NewRun({"chat"}), JobState::kPaused);
  Enter(Enter(paused, JobState::kQueued), JobState::kFailed);
  EXPECT_THAT(receiver_.Tries("chat", 3), ElementsAre("k 1", "k 1", "k 3"));
}

TEST_F(NotifierTest, OneThatHangsDelaysNoOther) {
  receiver_.HangOn("slow");
  Start({{"chat", Named("k")}, {"slow", Named("slow")}});
  for (int i = 0; i < 3; ++i) Enter(NewRun({"chat", "slow"}), JobState::kFailed);
  EXPECT_THAT(receiver_.Tries("chat", 3), ElementsAre("k 1", "k 2", "k 3"));
  EXPECT_THAT(receiver_.Tries("slow", 1), ElementsAre("slow 1"));
}

TEST_F(NotifierTest, WhatWasNotDeliveredIsAfterARestart) {
  receiver_.HangOn("slow");
  Start({{"chat", Named("slow")}});
  Enter(NewRun({"chat"}), JobState::kFailed);
  EXPECT_THAT(receiver_.Tries("chat", 1), ElementsAre("slow 1"));
  notifier_.reset();
  Enter(NewRun({"chat"}), JobState::kFailed);  // while nobody looks
  Start({{"chat", Named("k")}});
  EXPECT_THAT(receiver_.Tries("chat", 3), ElementsAre("slow 1", "k 1", "k 2"));
}

TEST_F(NotifierTest, ANewSecretIsUsedAtOnceAndTheOldTryBrokenOff) {
  receiver_.HangOn("old");
  Start({{"chat", Named("old")}, {"pager", Named("p")}});
  Enter(NewRun({"chat"}), JobState::kFailed);
  EXPECT_THAT(receiver_.Tries("chat", 1), ElementsAre("old 1"));
  notifier_->SetEndpoints({{"chat", Named("new")}, {"pager", Named("p")}});
  EXPECT_THAT(receiver_.Tries("chat", 2), ElementsAre("old 1", "new 1"));
}

TEST_F(NotifierTest, WhatIsForAReceiverThatIsGoneWaitsForIt) {
  Start({});
  Enter(NewRun({"chat"}), JobState::kFailed);
  const ReceiverStatus waiting = StatusOf("chat", [](const ReceiverStatus& s) { return s.waiting == 1; });
  EXPECT_EQ(waiting.waiting, 1);
  EXPECT_FALSE(waiting.configured);
  notifier_->SetEndpoints({{"chat", Named("k")}});
  EXPECT_THAT(receiver_.Tries("chat", 1), ElementsAre("k 1"));
}

TEST_F(NotifierTest, AFeedIsToldOfEveryRun) {
  Endpoint feed = Named("k");
  feed.on = {core::NoticeEvent::kSucceeded};
  Start({{"all", feed}});
  Enter(NewRun({}), JobState::kSucceeded);
  EXPECT_THAT(receiver_.Tries("all", 1), ElementsAre("k 1"));
}

}  // namespace
}  // namespace tp::notify
