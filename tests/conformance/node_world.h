// The node backend over real sshd hosts, which all worlds of a program share.
#pragma once

#include <memory>
#include <string>

#include "backends/node/node_backend.h"
#include "tests/conformance/process_world.h"
#include "tests/engines/ssh_hosts.h"

namespace tp::conformance {

class NodeWorld : public ProcessWorld {
 public:
  explicit NodeWorld(const tp::testing::SshHosts& hosts, std::string rank_binary = TP_TEST_RANK_BINARY);
  ~NodeWorld() override;

  Backend& backend() override { return *backend_; }
  void RestartBackend() override;
  // Rank i is on host i + 1.
  void Place(LaunchSpec& spec) override;

  void TermFromOutside(const LaunchSpec& spec, int pool, int rank) override;
  void KillRunner(const LaunchSpec& spec, int pool, int rank) override;

  void CutEngine() override;
  void MendEngine() override;

  node::NodeBackend& node() { return *backend_; }
  virtual node::NodeOptions options() const;

 protected:
  struct NotYet {};
  NodeWorld(const tp::testing::SshHosts& hosts, NotYet) : hosts_(hosts) {}  // without a backend
  void EndBackend() { backend_.reset(); }
  const tp::testing::SshHosts& hosts() const { return hosts_; }

 private:
  void SignalRunner(const LaunchSpec& spec, int pool, int rank, const char* signal);

  const tp::testing::SshHosts& hosts_;
  bool cut_ = false;
  std::unique_ptr<node::NodeBackend> backend_;
};

// The same where each host has a storage of its own at the storage's path.
class NodeCopiedWorld final : public NodeWorld {
 public:
  explicit NodeCopiedWorld(const tp::testing::SshHosts& hosts);
  ~NodeCopiedWorld() override;

  node::NodeOptions options() const override;
  // Each attempt is two rsyncs and their logins; the suite runs fifty at once.
  absl::Duration Patience() const override { return absl::Seconds(120); }
  // A path of a host's own storage, from here.
  std::string On(int host, const std::string& path) const;

 private:
  // While the rank runs its files are on its host only; once it has ended they are here.
  std::string SeenBy(int rank, const std::string& path) const override;

  const std::string name_;  // of the hosts' storages
};

}  // namespace tp::conformance
