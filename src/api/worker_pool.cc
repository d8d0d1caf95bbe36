#include "api/worker_pool.h"

#include <exception>
#include <utility>

namespace tp::api {

WorkerPool::WorkerPool(int threads, OnFault on_fault) : on_fault_(std::move(on_fault)) {
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Work(); });
}

WorkerPool::~WorkerPool() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void WorkerPool::Post(std::function<void()> task) { Add(Clock::now(), std::move(task)); }

void WorkerPool::PostAfter(absl::Duration delay, std::function<void()> task) {
  Add(Clock::now() + absl::ToChronoNanoseconds(delay), std::move(task));
}

size_t WorkerPool::backlog() const {
  const std::lock_guard lock(mutex_);
  return tasks_.size();
}

void WorkerPool::Add(Clock::time_point due, std::function<void()> task) {
  {
    const std::lock_guard lock(mutex_);
    tasks_.push({due, next_order_++, std::move(task)});
  }
  changed_.notify_one();
}

void WorkerPool::Work() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (tasks_.empty()) {
      changed_.wait(lock);
      continue;
    }
    if (const Clock::time_point due = tasks_.top().due; due > Clock::now()) {
      changed_.wait_until(lock, due);
      continue;
    }
    std::function<void()> run = std::move(const_cast<Task&>(tasks_.top()).run);
    tasks_.pop();
    lock.unlock();
    Run(run);
    run = nullptr;  // what it holds ends outside of the lock
    lock.lock();
  }
}

void WorkerPool::Run(const std::function<void()>& task) const {
  try {
    task();
  } catch (const std::exception& fault) {
    if (on_fault_) on_fault_(fault.what());
  }
}

}  // namespace tp::api
