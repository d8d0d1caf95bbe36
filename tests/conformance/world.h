// What the conformance suite needs of a backend's surroundings: an engine that runs the suite's program
// and a witness of what really ran. One world per test; everything it started is gone when it is.
#pragma once

#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "tp/backend.h"

namespace tp::conformance {

// The suite's program reads what to do from this variable of its rank:
//   exit N    exits with N
//   raise N   dies of signal N
//   hold      runs until it is killed
//   trap N    on TERM exits with N
//   eat       takes 256 MiB and exits with 0
inline constexpr char kProgramVariable[] = "TP_TEST_PROGRAM";
// ... and writes this one to the witness when it begins.
inline constexpr char kNonceVariable[] = "TP_TEST_NONCE";

class World {
 public:
  virtual ~World() = default;

  virtual Backend& backend() = 0;

  // tpd dies without a word and a new one begins: the same engine and storage, nothing remembered.
  virtual void RestartBackend() = 0;

  // How long anything may take, on a busy machine.
  virtual absl::Duration Patience() const { return absl::Seconds(30); }

  virtual std::string deployment() const = 0;
  virtual std::string storage_root() const = 0;
  virtual std::vector<std::string> Command() const = 0;
  // Puts the ranks where this world has machines for them.
  virtual void Place(LaunchSpec&) {}

  // --- Witness ------------------------------------------------------------------------------------
  // The nonces that the rank's program saw, once for each time it began.
  virtual std::vector<std::string> NoncesThatRan(const LaunchSpec& spec, int pool, int rank) = 0;
  // A variable as the rank's program saw it. Waits until the program has begun.
  virtual std::string EnvSeen(const LaunchSpec& spec, int pool, int rank, const std::string& name) = 0;
  // Blocks until the program is ready for signals.
  virtual void AwaitReady(const LaunchSpec& spec, int pool, int rank) = 0;
  virtual int ProcessesLeft(const LaunchSpec& spec) = 0;
  // Whether the program can know of a pause: $TP_PAUSE_FILE exists, where the world has files.
  virtual bool PauseAnnounced(const LaunchSpec& spec) = 0;

  // --- Trouble ------------------------------------------------------------------------------------
  virtual void TermFromOutside(const LaunchSpec& spec, int pool, int rank) = 0;
  virtual void KillRunner(const LaunchSpec& spec, int pool, int rank) = 0;
  virtual void BreakStorage() = 0;
  virtual void HealStorage() = 0;
  // Whoever opens a file in the attempt's directory waits until it is mended. Only of worlds that
  // HungStorageConformance is instantiated for: where there are no files, none can hang.
  virtual void HangStorageOf(const LaunchSpec&) { throw std::logic_error("this world has no storage"); }
  virtual void MendStorage() { throw std::logic_error("this world has no storage"); }
  // The engine is out of reach while what it runs goes on; and there again. Only of worlds that EngineConformance is
  // instantiated for: where tpd's own machine is the engine, it cannot be away.
  virtual void CutEngine() { throw std::logic_error("this world's engine cannot be away"); }
  virtual void MendEngine() { throw std::logic_error("this world's engine cannot be away"); }
};

struct WorldParam {
  std::string name;
  std::function<std::unique_ptr<World>()> make;
};

}  // namespace tp::conformance
