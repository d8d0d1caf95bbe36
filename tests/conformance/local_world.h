// The local backend over a temporary storage root, with a shell script as the suite's program.
#pragma once

#include <memory>
#include <string>

#include "backends/local/local_backend.h"
#include "tests/conformance/world.h"
#include "tests/launch/temp_dir.h"

namespace tp::conformance {

class LocalWorld final : public World {
 public:
  explicit LocalWorld(bool cgroups);
  ~LocalWorld() override;

  Backend& backend() override { return *backend_; }
  void RestartBackend() override;
  std::string deployment() const override { return deployment_; }
  std::string storage_root() const override { return dir_.At("storage"); }
  std::vector<std::string> Command() const override { return {"/bin/sh", dir_.At("program.sh")}; }

  std::vector<std::string> NoncesThatRan(const LaunchSpec& spec, int pool, int rank) override;
  std::string EnvSeen(const LaunchSpec& spec, int pool, int rank, const std::string& name) override;
  void AwaitReady(const LaunchSpec& spec, int pool, int rank) override;
  int ProcessesLeft(const LaunchSpec& spec) override;
  bool PauseAnnounced(const LaunchSpec& spec) override;

  void TermFromOutside(const LaunchSpec& spec, int pool, int rank) override;
  void KillRunner(const LaunchSpec& spec, int pool, int rank) override;
  void BreakStorage() override;
  void HealStorage() override;

  local::LocalBackend& local() { return *backend_; }
  local::LocalOptions options() const;

 private:
  pid_t RunnerOf(const LaunchSpec& spec, int pool, int rank) const;

  tp::testing::TempDir dir_;
  const std::string deployment_;
  const bool cgroups_;
  std::unique_ptr<local::LocalBackend> backend_;
};

}  // namespace tp::conformance
