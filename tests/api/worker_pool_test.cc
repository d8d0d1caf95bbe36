#include "api/worker_pool.h"

#include <atomic>
#include <future>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace tp::api {
namespace {

TEST(WorkerPool, RunsInOrderOnOneThread) {
  WorkerPool pool(1);
  std::vector<int> order;
  std::promise<void> done;
  for (int i = 0; i < 100; ++i) pool.Post([&order, i] { order.push_back(i); });
  pool.Post([&done] { done.set_value(); });
  done.get_future().wait();
  for (int i = 0; i < 100; ++i) EXPECT_EQ(order[static_cast<size_t>(i)], i);
}

TEST(WorkerPool, DelayedTasksWaitAndOthersDoNot) {
  WorkerPool pool(1);
  std::promise<absl::Duration> late;
  std::promise<void> now;
  const auto start = std::chrono::steady_clock::now();
  pool.PostAfter(absl::Milliseconds(50),
                 [&] { late.set_value(absl::FromChrono(std::chrono::steady_clock::now() - start)); });
  pool.Post([&] { now.set_value(); });
  now.get_future().wait();
  EXPECT_GE(late.get_future().get(), absl::Milliseconds(50));
}

TEST(WorkerPool, AnEarlierTaskOvertakesOneThatIsWaitedFor) {
  WorkerPool pool(1);
  pool.PostAfter(absl::Hours(1), [] { ADD_FAILURE() << "an hour has not passed"; });
  std::promise<void> done;
  pool.PostAfter(absl::Milliseconds(1), [&] { done.set_value(); });
  done.get_future().wait();
  EXPECT_EQ(pool.backlog(), 1u);
}

TEST(WorkerPool, PostsFromManyThreadsAllRun) {
  std::atomic<int> ran = 0;
  std::promise<void> all;
  {
    WorkerPool pool(4);
    std::vector<std::thread> posters;
    for (int t = 0; t < 4; ++t) {
      posters.emplace_back([&] {
        for (int i = 0; i < 1000; ++i) {
          pool.Post([&] {
            if (++ran == 4000) all.set_value();
          });
        }
      });
    }
    for (std::thread& poster : posters) poster.join();
    all.get_future().wait();
  }
  EXPECT_EQ(ran, 4000);
}

TEST(WorkerPool, WhatATaskThrowsEndsThatTaskAlone) {
  std::promise<std::string> fault;
  std::promise<void> next;
  WorkerPool pool(1, [&](std::string_view what) { fault.set_value(std::string(what)); });
  pool.Post([] { throw std::runtime_error("index out of range"); });
  pool.Post([&] { next.set_value(); });
  EXPECT_EQ(fault.get_future().get(), "index out of range");
  next.get_future().wait();
}

TEST(WorkerPool, DropsWhatHasNotStartedWhenItEnds) {
  auto kept = std::make_shared<int>(1);
  {
    WorkerPool pool(2);
    pool.PostAfter(absl::Hours(1), [kept] { ADD_FAILURE(); });
  }
  EXPECT_EQ(kept.use_count(), 1);
}

}  // namespace
}  // namespace tp::api
