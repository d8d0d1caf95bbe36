// A world whose ranks are processes of this kernel, however namespaces divide it: a shell script as the suite's
// program, a temporary storage root, and everything found again through /proc.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "tests/conformance/world.h"
#include "tests/launch/hung_directory.h"
#include "tests/launch/temp_dir.h"

namespace tp::conformance {

class ProcessWorld : public World {
 public:
  // `rank_binary`: the runner of its ranks.
  explicit ProcessWorld(std::string rank_binary = TP_TEST_RANK_BINARY);
  ~ProcessWorld() override;  // ends what is left of its processes

  std::string deployment() const override { return deployment_; }
  std::string storage_root() const override { return dir_.At("storage"); }
  std::vector<std::string> Command() const override { return {"/bin/sh", dir_.At("program.sh")}; }

  std::vector<std::string> NoncesThatRan(const LaunchSpec& spec, int pool, int rank) override;
  std::string EnvSeen(const LaunchSpec& spec, int pool, int rank, const std::string& name) override;
  void AwaitReady(const LaunchSpec& spec, int pool, int rank) override;
  int ProcessesLeft(const LaunchSpec& spec) override;
  bool PauseAnnounced(const LaunchSpec& spec) override;
  void BreakStorage() override;
  void HealStorage() override;
  void HangStorageOf(const LaunchSpec& spec) override;
  void MendStorage() override { hung_.reset(); }

 protected:
  // Where a file that a rank sees at `path` is found from here.
  virtual std::string SeenBy(int /*rank*/, const std::string& path) const { return path; }
  // As its own machine numbers it. Waits for the claim.
  pid_t RunnerOf(const LaunchSpec& spec, int pool, int rank) const;
  std::string At(std::string_view name) const { return dir_.At(name); }
  const std::string& rank_binary() const { return rank_binary_; }
  void KillProcesses() const;

 private:
  tp::testing::TempDir dir_;
  const std::string rank_binary_;
  const std::string deployment_;
  std::optional<tp::testing::HungDirectory> hung_;
};

}  // namespace tp::conformance
