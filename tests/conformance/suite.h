// The one conformance suite of all backends (DESIGN 10). A backend instantiates it over its world:
//   INSTANTIATE_TEST_SUITE_P(Fake, Conformance, ::testing::Values(WorldParam{...}), WorldName);
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "absl/time/clock.h"
#include "tests/conformance/world.h"

namespace tp::conformance {

inline void PrintTo(const WorldParam& param, std::ostream* out) { *out << param.name; }
inline std::string WorldName(const ::testing::TestParamInfo<WorldParam>& info) { return info.param.name; }

class Conformance : public ::testing::TestWithParam<WorldParam> {
 protected:
  Conformance();

  // An attempt of its own whose ranks run `programs`, one pool.
  LaunchSpec Spec(const std::vector<std::string>& programs);
  LaunchSpec SpecOf(int run, const std::vector<std::string>& programs, const std::string& nonce) const;
  static AttemptTarget TargetOf(const LaunchSpec& spec);
  // The same attempt under another launch call.
  static LaunchSpec WithNonce(LaunchSpec spec, const std::string& nonce);

  Backend& backend() { return world_->backend(); }
  World& world() { return *world_; }
  absl::Time Soon() const { return absl::Now() + world_->Patience(); }

  void LaunchAccepted(const LaunchSpec& spec);
  Observation ObserveOne(const LaunchSpec& spec);
  // The first Present for which `done` holds; a failure of the test after half a minute.
  Present Await(const LaunchSpec& spec, const std::function<bool(const Present&)>& done);
  Present AwaitStarted(const LaunchSpec& spec);
  Present AwaitFreed(const LaunchSpec& spec);
  // Runs to its end and gives rank 0's end record.
  EndRecord RunToEnd(const LaunchSpec& spec);

  std::unique_ptr<World> world_;

 private:
  int runs_ = 0;
};

// Cases of backends whose engine can be out of tpd's reach.
class EngineConformance : public Conformance {};

// Cases of backends whose storage can hang.
class HungStorageConformance : public Conformance {};

// Cases of backends that hold a rank to its memory.
class MemoryConformance : public Conformance {};

}  // namespace tp::conformance
