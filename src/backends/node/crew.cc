#include "backends/node/crew.h"

#include <system_error>
#include <thread>
#include <utility>

namespace tp::node {

Crew::~Crew() {
  std::unique_lock lock(mutex_);
  idle_.wait(lock, [this] { return busy_ == 0; });
}

void Crew::Start(std::function<void()> work) {
  {
    const std::lock_guard lock(mutex_);
    ++busy_;
  }
  auto task = [this, work = std::move(work)] {
    work();
    const std::lock_guard lock(mutex_);
    if (--busy_ == 0) idle_.notify_all();
  };
  try {
    std::thread(task).detach();
  } catch (const std::system_error&) {
    task();
  }
}

void ForEachAtOnce(size_t count, const std::function<void(size_t)>& work) {
  Crew crew;
  for (size_t i = 1; i < count; ++i) crew.Start([&work, i] { work(i); });
  if (count > 0) work(0);
}

}  // namespace tp::node
