// Threads for work whose end nobody may be there to see, all of it over before the crew is. Thread-safe.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>

namespace tp::node {

class Crew {
 public:
  Crew() = default;
  ~Crew();  // waits for all work
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  // On a thread of its own; in the caller's where the machine has none left.
  void Start(std::function<void()> work);

 private:
  std::mutex mutex_;
  std::condition_variable idle_;
  int busy_ = 0;
};

// Runs `work(i)` for each i below `count` at the same time; returns when all have.
void ForEachAtOnce(size_t count, const std::function<void(size_t)>& work);

}  // namespace tp::node
