// The local backend over a temporary storage root.
#pragma once

#include <memory>
#include <string>

#include "backends/local/local_backend.h"
#include "tests/conformance/process_world.h"

namespace tp::conformance {

class LocalWorld final : public ProcessWorld {
 public:
  explicit LocalWorld(bool cgroups, std::string rank_binary = TP_TEST_RANK_BINARY);
  ~LocalWorld() override;

  Backend& backend() override { return *backend_; }
  void RestartBackend() override;

  void TermFromOutside(const LaunchSpec& spec, int pool, int rank) override;
  void KillRunner(const LaunchSpec& spec, int pool, int rank) override;

  local::LocalBackend& local() { return *backend_; }
  local::LocalOptions options() const;

 private:
  const bool cgroups_;
  std::unique_ptr<local::LocalBackend> backend_;
};

}  // namespace tp::conformance
