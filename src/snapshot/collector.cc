#include "snapshot/collector.h"

#include <utility>

#include "base/status.h"

namespace tp::snapshot {

Collector::Collector(Store& store, CollectorOptions options)
    : store_(store), options_(std::move(options)), thread_([this] { Work(); }) {}

Collector::~Collector() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  stopped_changed_.notify_all();
  thread_.join();
}

void Collector::Work() {
  const auto interval = absl::ToChronoMilliseconds(options_.interval);
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      if (stopped_changed_.wait_for(lock, interval, [this] { return stopped_; })) return;
    }
    options_.report(Round());
  }
}

absl::StatusOr<Collected> Collector::Round() {
  TP_ASSIGN_OR_RETURN(const absl::flat_hash_set<std::string> needed, options_.needed());
  return store_.Collect(needed);
}

}  // namespace tp::snapshot
