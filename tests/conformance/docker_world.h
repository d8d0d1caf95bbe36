// The docker backend over a real engine, which all worlds of a program share.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backends/docker/docker_backend.h"
#include "tests/conformance/process_world.h"
#include "tests/engines/docker_engine.h"

namespace tp::conformance {

class DockerWorld final : public ProcessWorld {
 public:
  explicit DockerWorld(const tp::testing::DockerEngine& engine, std::string rank_binary = TP_TEST_RANK_BINARY);
  ~DockerWorld() override;

  Backend& backend() override { return *backend_; }
  void RestartBackend() override;
  // Where the containers see it.
  std::vector<std::string> Command() const override { return {"/bin/sh", storage_root() + "/program.sh"}; }
  void Place(LaunchSpec& spec) override;

  void TermFromOutside(const LaunchSpec& spec, int pool, int rank) override;
  void KillRunner(const LaunchSpec& spec, int pool, int rank) override;

  void CutEngine() override;
  void MendEngine() override;

  docker::DockerBackend& docker() { return *backend_; }
  docker::DockerOptions options() const;

 private:
  const tp::testing::DockerEngine& engine_;
  std::unique_ptr<docker::DockerBackend> backend_;
};

}  // namespace tp::conformance
