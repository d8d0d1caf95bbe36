#include "api/watch_hub.h"

#include <atomic>
#include <thread>

#include <gtest/gtest.h>

namespace tp::api {
namespace {

loop::CommitNotice Notice(int64_t first, std::vector<int64_t> runs) {
  loop::CommitNotice notice;
  for (const int64_t run : runs) {
    store::EventRow event;
    event.revision = first++;
    event.run = run;
    notice.events.push_back(event);
  }
  notice.revision = first - 1;
  return notice;
}

std::vector<int64_t> Revisions(const std::optional<std::vector<store::EventRow>>& events) {
  std::vector<int64_t> revisions;
  for (const store::EventRow& event : *events) revisions.push_back(event.revision);
  return revisions;
}

TEST(WatchHub, GivesEventsAfterARevisionInPages) {
  WatchHub hub(10);
  hub.OnCommit(Notice(11, {1, 2, 1}));
  hub.OnCommit(Notice(14, {3}));
  EXPECT_EQ(hub.revision(), 14);
  EXPECT_EQ(Revisions(hub.After(10, 100)), (std::vector<int64_t>{11, 12, 13, 14}));
  EXPECT_EQ(Revisions(hub.After(12, 1)), (std::vector<int64_t>{13}));
  EXPECT_TRUE(hub.After(14, 100)->empty());
}

TEST(WatchHub, SaysWhenItNoLongerHoldsThem) {
  WatchHub hub(10, /*max_events=*/2);
  EXPECT_FALSE(hub.After(9, 100).has_value()) << "before its start";
  hub.OnCommit(Notice(11, {1, 1, 1}));
  EXPECT_FALSE(hub.After(10, 100).has_value());
  EXPECT_EQ(Revisions(hub.After(11, 100)), (std::vector<int64_t>{12, 13}));
}

TEST(WatchHub, WakesOnceAndOnlyForTheRun) {
  WatchHub hub(0);
  int one = 0;
  int any = 0;
  hub.Wait(1, 0, [&] { ++one; });
  hub.Wait(0, 0, [&] { ++any; });
  hub.OnCommit(Notice(1, {2}));
  EXPECT_EQ(one, 0);
  EXPECT_EQ(any, 1);
  hub.OnCommit(Notice(2, {1}));
  hub.OnCommit(Notice(3, {1}));
  EXPECT_EQ(one, 1);
  EXPECT_EQ(any, 1);
}

TEST(WatchHub, WakesAtOnceForWhatHasHappenedAlready) {
  WatchHub hub(0);
  hub.OnCommit(Notice(1, {1, 2}));
  int woken = 0;
  hub.Wait(1, 0, [&] { ++woken; });
  EXPECT_EQ(woken, 1);
  hub.Wait(1, 1, [&] { ++woken; });
  EXPECT_EQ(woken, 1) << "the event of run 1 is not above revision 1";
  hub.Wait(0, 1, [&] { ++woken; });
  EXPECT_EQ(woken, 2);
}

TEST(WatchHub, CancelledWaitsAreNotWoken) {
  WatchHub hub(0);
  const auto id = hub.Wait(1, 0, [] { ADD_FAILURE(); });
  hub.Cancel(id);
  hub.Cancel(id);
  hub.OnCommit(Notice(1, {1}));
}

TEST(WatchHub, FollowersMissNothingWhileCommitsGoOn) {
  constexpr int64_t kCommits = 20'000;
  WatchHub hub(0, 1 << 20);
  std::thread committer([&] {
    for (int64_t revision = 1; revision <= kCommits; ++revision) hub.OnCommit(Notice(revision, {revision % 3}));
  });
  int64_t position = 0;
  while (position < kCommits) {
    std::atomic<bool> woken = false;
    hub.Wait(0, position, [&] {
      woken = true;
      woken.notify_one();
    });
    woken.wait(false);
    const auto events = hub.After(position, 64);
    ASSERT_TRUE(events.has_value());
    ASSERT_FALSE(events->empty());
    for (const store::EventRow& event : *events) ASSERT_EQ(event.revision, ++position);
  }
  committer.join();
}

}  // namespace
}  // namespace tp::api
