// Threads for what may block: store reads and files. gRPC's own threads only post here.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <queue>
#include <string_view>
#include <thread>
#include <tuple>
#include <vector>

#include "absl/time/time.h"

namespace tp::api {

// Thread-safe. Tasks start in the order of their due time, then of posting. What a task throws ends that task
// alone, and is told to `on_fault`, on the task's thread.
class WorkerPool {
 public:
  using OnFault = std::function<void(std::string_view what)>;

  explicit WorkerPool(int threads, OnFault on_fault = nullptr);
  // Joins its threads; tasks that have not started are dropped.
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  void Post(std::function<void()> task);
  void PostAfter(absl::Duration delay, std::function<void()> task);

  // Tasks that wait, delayed ones included.
  size_t backlog() const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Task {
    Clock::time_point due;
    uint64_t order = 0;
    std::function<void()> run;
    bool operator>(const Task& other) const { return std::tie(due, order) > std::tie(other.due, other.order); }
  };

  void Add(Clock::time_point due, std::function<void()> task);
  void Work();
  void Run(const std::function<void()>& task) const;

  const OnFault on_fault_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::priority_queue<Task, std::vector<Task>, std::greater<>> tasks_;  // guarded by mutex_
  uint64_t next_order_ = 0;                                             // guarded by mutex_
  bool stopping_ = false;                                               // guarded by mutex_
  std::vector<std::thread> threads_;
};

}  // namespace tp::api
