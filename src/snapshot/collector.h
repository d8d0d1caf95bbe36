// Collects what no run needs any more, every so often, on a thread of its own.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "snapshot/store.h"

namespace tp::snapshot {

struct CollectorOptions {
  absl::Duration interval = absl::Minutes(10);
  // The snapshots of all runs that may still be launched. An error: nothing is collected this time.
  std::function<absl::StatusOr<absl::flat_hash_set<std::string>>()> needed;
  // What each round came to. On the collector's thread.
  std::function<void(const absl::StatusOr<Collected>&)> report;
};

class Collector {
 public:
  // `store` outlives the collector. The first round is an interval away.
  Collector(Store& store, CollectorOptions options);
  // Waits for the round under way.
  ~Collector();
  Collector(const Collector&) = delete;
  Collector& operator=(const Collector&) = delete;

 private:
  void Work();
  absl::StatusOr<Collected> Round();

  Store& store_;
  const CollectorOptions options_;
  std::mutex mutex_;
  std::condition_variable stopped_changed_;
  bool stopped_ = false;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace tp::snapshot
