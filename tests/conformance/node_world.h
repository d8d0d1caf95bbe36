// The node backend over real sshd hosts, which all worlds of a program share.
#pragma once

#include <memory>
#include <string>

#include "backends/node/node_backend.h"
#include "tests/conformance/process_world.h"
#include "tests/engines/ssh_hosts.h"

namespace tp::conformance {

class NodeWorld final : public ProcessWorld {
 public:
  explicit NodeWorld(const tp::testing::SshHosts& hosts);
  ~NodeWorld() override;

  Backend& backend() override { return *backend_; }
  void RestartBackend() override;
  // Rank i is on host i + 1.
  void Place(LaunchSpec& spec) override;

  void TermFromOutside(const LaunchSpec& spec, int pool, int rank) override;
  void KillRunner(const LaunchSpec& spec, int pool, int rank) override;

  node::NodeBackend& node() { return *backend_; }
  node::NodeOptions options() const;

 private:
  void SignalRunner(const LaunchSpec& spec, int pool, int rank, const char* signal);

  const tp::testing::SshHosts& hosts_;
  std::unique_ptr<node::NodeBackend> backend_;
};

}  // namespace tp::conformance
