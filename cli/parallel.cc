#include "cli/parallel.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

namespace tp::cli {
namespace {

constexpr std::chrono::milliseconds kWatchInterval(100);

}  // namespace

absl::Status RunInParallel(int workers, const std::function<absl::Status(int)>& work,
                           const std::function<void()>& watch) {
  std::mutex mutex;
  std::condition_variable ended;
  int running = workers;
  absl::Status first_error;
  std::vector<std::jthread> threads;
  threads.reserve(static_cast<size_t>(workers));
  for (int worker = 0; worker < workers; ++worker) {
    threads.emplace_back([&, worker] {
      const absl::Status status = work(worker);
      const std::lock_guard lock(mutex);
      first_error.Update(status);
      --running;
      ended.notify_one();
    });
  }
  std::unique_lock lock(mutex);
  while (!ended.wait_for(lock, kWatchInterval, [&] { return running == 0; })) {
    lock.unlock();
    watch();
    lock.lock();
  }
  return first_error;
}

}  // namespace tp::cli
