// Asks the engines every so often which of their cards others hold and which are broken, and tells the loop. A thread
// of its own.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
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
  absl::Duration limit = absl::Seconds(5);         // of one question
  absl::Duration look_limit = absl::Seconds(10);   // of one look at cards: the tool is slow where it has to wake them
  absl::Duration pause = absl::Milliseconds(300);  // before a look that was asked for: others may ask as well
  std::map<std::string, std::shared_ptr<Backend>> backends;
  config::DockerCards docker_cards;
  std::function<std::shared_ptr<const core::Registry>()> registry;
  std::function<void(loop::CardsHeldElsewhere)> found;
  std::function<void(loop::CardsSeen)> cards;
};

class EngineWatch {
 public:
  // The first round begins at once.
  explicit EngineWatch(EngineWatchOptions options);
  ~EngineWatch();  // waits for a question under way
  EngineWatch(const EngineWatch&) = delete;
  EngineWatch& operator=(const EngineWatch&) = delete;

  // A look at the cards of all backends, without waiting for the next round. From any thread.
  void LookSoon();

 private:
  void Work();
  void LookUntil(absl::Time next_round, std::unique_lock<std::mutex>& lock);
  void Round();
  void LookAtCards(const core::Registry& registry, const std::string& name, Backend& backend);

  const EngineWatchOptions options_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopped_ = false;                           // guarded by mutex_
  bool look_soon_ = false;                         // guarded by mutex_
  std::map<std::string, core::KnownFaults> told_;  // by backend; the watch's thread only
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
