#include "loop/wait_list.h"

#include <algorithm>
#include <map>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace tp::loop::test {
namespace {

const absl::Time kNow = absl::FromUnixSeconds(1'800'000'000);

core::StepRef Ref(int64_t run) { return {run, 0}; }
WaitList::Order At(int64_t run, int32_t priority = 50) { return {-priority, kNow, Ref(run)}; }

std::vector<int64_t> TakeAll(WaitList& list) {
  std::vector<int64_t> runs;
  while (const auto ref = list.Take()) runs.push_back(ref->run);
  return runs;
}

TEST(WaitList, HigherPriorityThenSubmissionThenId) {
  WaitList list;
  list.Add(At(2));
  list.Add(At(1));
  list.Add(At(3, 90));
  EXPECT_EQ(TakeAll(list), (std::vector<int64_t>{3, 1, 2}));
  EXPECT_FALSE(list.AnyToLookAt());
}

TEST(WaitList, RoomIsLookedForOnceASize) {
  WaitList list;
  for (int64_t run = 1; run <= 1000; ++run) list.Add(At(run));
  while (const auto ref = list.Take()) list.Keep(*ref, std::nullopt, ref->run % 2 ? "h200:1x8" : "h200:2x8");
  list.LookForRoom();
  EXPECT_EQ(TakeAll(list), (std::vector<int64_t>{1, 2}));
}

TEST(WaitList, TheNextOfASizeFollowsWhenTheFirstHasLeft) {
  WaitList list;
  for (int64_t run = 1; run <= 4; ++run) list.Add(At(run));
  while (const auto ref = list.Take()) list.Keep(*ref, std::nullopt, "a");
  list.LookForRoom();
  EXPECT_EQ(list.Take(), Ref(1));
  list.Remove(Ref(1));  // launched
  EXPECT_EQ(list.Take(), Ref(2));
  list.Keep(Ref(2), kNow + absl::Seconds(5), "");  // room, but it cools down
  EXPECT_EQ(list.Take(), Ref(3));
  list.Keep(Ref(3), std::nullopt, "a");  // no room any more
  EXPECT_FALSE(list.Take());
  list.LookAtOpened(kNow + absl::Seconds(5));
  EXPECT_EQ(list.Take(), Ref(2));
}

TEST(WaitList, AFirstThatIsStoppedBeforeItWasLookedAtHandsOn) {
  WaitList list;
  for (int64_t run = 1; run <= 3; ++run) list.Add(At(run));
  while (const auto ref = list.Take()) list.Keep(*ref, std::nullopt, "a");
  list.LookForRoom();
  list.Remove(Ref(1));
  EXPECT_EQ(TakeAll(list), (std::vector<int64_t>{2}));
}

TEST(WaitList, OpeningsComeInTheirTimeAndCanChange) {
  WaitList list;
  list.Add(At(1));
  list.Add(At(2));
  TakeAll(list);
  list.Keep(Ref(1), kNow + absl::Seconds(5), "");
  list.Keep(Ref(2), kNow + absl::Seconds(9), "");
  EXPECT_EQ(list.NextOpening(), kNow + absl::Seconds(5));
  list.Keep(Ref(1), kNow + absl::Seconds(20), "");
  EXPECT_EQ(list.NextOpening(), kNow + absl::Seconds(9));
  list.LookAtOpened(kNow + absl::Seconds(10));
  EXPECT_EQ(TakeAll(list), (std::vector<int64_t>{2}));
  list.Remove(Ref(1));
  EXPECT_FALSE(list.NextOpening());
  list.Remove(Ref(1));
  list.Look(Ref(1));
  EXPECT_FALSE(list.AnyToLookAt());
}

// Against a planner that looks at everything whenever cards are released: the same steps start, in the
// same order.
TEST(WaitList, StartsWhatLookingAtAllWouldStart) {
  std::mt19937_64 random(7);
  for (int world = 0; world < 200; ++world) {
    WaitList list;
    std::map<WaitList::Order, int> queued;  // size in cards
    std::vector<int> running;
    int free = 16;
    int64_t next = 1;
    for (int turn = 0; turn < 60; ++turn) {
      if (random() % 3 != 0) {
        const WaitList::Order order = At(next++, static_cast<int32_t>(random() % 3));
        queued[order] = 1 << (random() % 5);
        list.Add(order);
      } else if (!running.empty()) {
        free += running.back();
        running.pop_back();
        list.LookForRoom();
      } else if (!queued.empty()) {
        list.Remove(std::get<core::StepRef>(queued.begin()->first));
        queued.erase(queued.begin());
      }
      std::vector<WaitList::Order> expected;
      int left = free;
      for (const auto& [order, size] : queued) {
        if (size > left) continue;
        left -= size;
        expected.push_back(order);
      }
      std::vector<WaitList::Order> started;
      while (const auto ref = list.Take()) {
        const auto found = std::find_if(queued.begin(), queued.end(),
                                        [&](const auto& item) { return std::get<core::StepRef>(item.first) == *ref; });
        ASSERT_NE(found, queued.end());
        if (found->second > free) {
          list.Keep(*ref, std::nullopt, std::to_string(found->second));
          continue;
        }
        free -= found->second;
        running.push_back(found->second);
        started.push_back(found->first);
        list.Remove(*ref);
        queued.erase(found);
      }
      ASSERT_EQ(started, expected);
    }
  }
}

}  // namespace
}  // namespace tp::loop::test
