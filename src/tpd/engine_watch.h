// Asks the engines every so often which of their cards others hold and which are broken, and tells the loop. A thread
// of its own.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "config/server_config.h"
#include "core/registry.h"
#include "loop/loop.h"
#include "tp/backend.h"

namespace tp::tpd {

// The functions are called on the watch's thread.
struct EngineWatchOptions {
  absl::Duration interval = absl::Seconds(10);
  absl::Duration limit = absl::Seconds(5);  // of one question
  std::map<std::string, std::shared_ptr<Backend>> backends;
  config::DockerCards docker_cards;
  std::function<std::shared_ptr<const core::Registry>()> registry;
  std::function<void(loop::CardsHeldElsewhere)> found;
  std::function<void(loop::PartBroken)> broken;
};

class EngineWatch {
 public:
  // The first round begins at once.
  explicit EngineWatch(EngineWatchOptions options);
  ~EngineWatch();  // waits for a question under way
  EngineWatch(const EngineWatch&) = delete;
  EngineWatch& operator=(const EngineWatch&) = delete;

 private:
  void Work();
  void Round();
  void LookAtCards(const core::Registry& registry, const std::string& name, Backend& backend);

  const EngineWatchOptions options_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopped_ = false;  // guarded by mutex_
  // What was found broken in the last round, by backend: told once, so that what an admin has seen to and cleared is
  // not taken out again by an old line of a log. The watch's thread only.
  std::map<std::string, std::set<std::pair<core::NodePart, std::string>>> told_;
  std::thread thread_;
};

// The registry's nodes on which the backend launches. Pure.
std::vector<RankHost> NodesOf(const core::Registry& registry, const std::string& backend);

// What a backend's nodes cannot give: what its engine says that others hold, and on docker what the machine's shared
// pool leaves out. Pure.
std::vector<core::CardHeldElsewhere> HeldElsewhere(const core::Registry& registry, const std::string& backend,
                                                   const std::vector<ForeignCard>& foreign,
                                                   const config::DockerCards& docker_cards);

}  // namespace tp::tpd
