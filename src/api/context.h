// What every service works with. Made by the server, outlives all calls.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "api/configuration_port.h"
#include "api/forecast.h"
#include "api/loop_port.h"
#include "api/page_token.h"
#include "api/queue_cache.h"
#include "api/watch_hub.h"
#include "api/worker_pool.h"
#include "auth/authenticator.h"
#include "core/launch_plan.h"
#include "core/reconcile.h"
#include "core/registry.h"
#include "core/step.h"
#include "notify/status.h"
#include "store/store.h"
#include "tp/nodes.h"

namespace tp::snapshot {
class Store;
}

namespace tp::api {

// What does not change while tpd runs.
struct ServerFacts {
  std::string version;
  std::string deployment;
  int64_t epoch = 1;
  core::LaunchLayout layout;
  core::Policy policy = {};
};

struct Context {
  LoopPort& loop;
  store::Reader& reader;
  snapshot::Store& snapshots;
  ConfigurationPort& configuration;
  std::function<std::shared_ptr<const core::Registry>()> registry;
  std::function<absl::Time()> now;
  std::function<absl::StatusOr<std::vector<core::SeenObject>>()> inventory;  // of all engines; blocks
  std::function<absl::Status()> may_take_work;  // RESOURCE_EXHAUSTED: submissions and uploads are refused
  std::function<absl::StatusOr<std::vector<notify::ReceiverStatus>>()> receivers;
  std::function<std::vector<NodeSight>()> node_sights;  // as the backends saw them last
  ServerFacts facts;
  PageTokens page_tokens;
  auth::Authenticator authenticator;
  WatchHub hub;
  QueueCache queue = {};
  Forecasts forecasts = {};
  // Two pools, so that storage that hangs keeps nobody from submitting.
  WorkerPool calls;  // store reads and conversion
  WorkerPool files;  // logs, results, metrics, snapshots
};

}  // namespace tp::api
