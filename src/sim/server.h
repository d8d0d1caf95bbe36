// tpd in virtual time: the loop, its writer (one commit under way, one decided, as LoopThread does it)
// and its death at any moment, after which it is built again from what the store holds.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/registry.h"
#include "loop/commands.h"
#include "loop/loop.h"
#include "sim/defects.h"
#include "sim/journal.h"
#include "sim/options.h"
#include "sim/rng.h"
#include "sim/sink.h"
#include "sim/timeline.h"
#include "store/memory_store.h"

namespace tp::sim {

class Server {
 public:
  struct Observers {
    std::function<void()> turned;
    std::function<void(const store::Txn&)> committed;
    std::function<void()> restarted;
    std::function<void()> died = {};
  };

  // All outlive the server. `table` is what the loop runs by.
  Server(const Options& options, const Defects& defects, const core::Table& table, Timeline& timeline, Rng& rng,
         Journal& journal, SimSink& sink);
  void Watch(Observers observers) { observers_ = std::move(observers); }

  void Start();
  void StartCrashes();
  void StartClockSets();
  bool up() const { return loop_ != nullptr; }
  // Rises with every start.
  int64_t life() const { return life_; }
  // Nothing decided waits for its commit, no message for its turn.
  bool Quiet() const;

  void Post(loop::Command command, loop::Reply reply);
  void Post(std::vector<loop::Command> commands, loop::BulkReply reply);
  void Post(loop::CardsSeen seen);
  void Reload(std::shared_ptr<const core::Registry> registry);

  store::MemoryStore& store() { return *store_; }
  const loop::Loop& loop() const { return *loop_; }
  const core::Registry& registry() const { return *registry_; }
  const loop::Settings& settings() const { return settings_; }

 private:
  void Crash(std::string_view when);
  void CrashLater();
  bool MayCrash() const;
  void SetClockLater();
  void SetClock();
  void Wake();
  void ArmTimer();
  void Turn();
  void StartWriting();
  void FinishWriting();
  void Commit(store::Txn txn);
  void LaunchAgain(const store::Loaded& loaded);

  const Options& options_;
  const Defects& defects_;
  Timeline& timeline_;
  Rng& rng_;
  Journal& journal_;
  SimSink& sink_;
  Observers observers_;
  loop::Settings settings_;
  std::shared_ptr<const core::Registry> registry_;
  std::unique_ptr<store::MemoryStore> store_;
  std::unique_ptr<store::MemoryStore> store_before_;  // the newest commit; only for Defects::commits_lost
  std::unique_ptr<loop::Loop> loop_;
  std::optional<store::Txn> writing_;
  std::optional<store::Txn> next_;
  std::optional<absl::Time> armed_;
  bool turn_due_ = false;
  bool crashes_ = false;
  int64_t no_crash_before_us_ = 0;
  int64_t life_ = 0;
};

}  // namespace tp::sim
