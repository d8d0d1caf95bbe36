#include "tests/conformance/node_world.h"

#include <filesystem>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/file.h"

namespace tp::conformance {

NodeWorld::NodeWorld(const tp::testing::SshHosts& hosts, std::string rank_binary)
    : ProcessWorld(std::move(rank_binary)), hosts_(hosts) {
  RestartBackend();
}

NodeWorld::~NodeWorld() {
  backend_.reset();
  if (cut_) MendEngine();
  KillProcesses();
}

node::NodeOptions NodeWorld::options() const {
  node::NodeOptions options{.deployment = deployment(),
                            .storage_root = storage_root(),
                            .rank_binary = rank_binary(),
                            .data_directory = hosts_.directory() + "/tpd",
                            .ssh = {},
                            .reader = {}};
  options.ssh.user = "root";
  options.ssh.identity_file = hosts_.identity_file();
  options.ssh.known_hosts = hosts_.known_hosts();
  return options;
}

void NodeWorld::RestartBackend() {
  backend_.reset();
  std::filesystem::create_directories(options().data_directory);
  auto created = node::NodeBackend::Create(options());
  ASSERT_TRUE(created.ok()) << created.status();
  backend_ = *std::move(created);
  std::vector<RankHost> hosts;
  for (int host = 1; host <= hosts_.count(); ++host) hosts.push_back({hosts_.Node(host), hosts_.Address(host)});
  backend_->SetNodes(hosts);
}

void NodeWorld::Place(LaunchSpec& spec) {
  for (RankLaunch& rank : spec.ranks) {
    rank.placement.node = hosts_.Node(rank.rank + 1);
    rank.placement.address = hosts_.Address(rank.rank + 1);
  }
}

void NodeWorld::SignalRunner(const LaunchSpec& spec, int pool, int rank, const char* signal) {
  const pid_t runner = RunnerOf(spec, pool, rank);
  ASSERT_GT(runner, 1);
  hosts_.Exec(rank + 1, {"/bin/kill", signal, std::to_string(runner)});
}

void NodeWorld::TermFromOutside(const LaunchSpec& spec, int pool, int rank) { SignalRunner(spec, pool, rank, "-TERM"); }

void NodeWorld::KillRunner(const LaunchSpec& spec, int pool, int rank) { SignalRunner(spec, pool, rank, "-KILL"); }

// Links of the machines go down: what is under way hangs, and a new connection finds no way.
void NodeWorld::CutEngine() {
  cut_ = true;
  for (int host = 1; host <= hosts_.count(); ++host) hosts_.Do({"cut", std::to_string(host)});
}

void NodeWorld::MendEngine() {
  for (int host = 1; host <= hosts_.count(); ++host) hosts_.Do({"mend", std::to_string(host)});
  cut_ = false;
}

// --- Copied ---------------------------------------------------------------------------------------------

NodeCopiedWorld::NodeCopiedWorld(const tp::testing::SshHosts& hosts)
    : NodeWorld(hosts, NotYet{}), name_("storage-" + RandomName().substr(0, 8)) {
  for (int host = 1; host <= hosts.count(); ++host) {
    hosts.Exec(host, {"/bin/sh", "-c",
                      fmt::format("mkdir -p /srv/{0} && mount --bind /srv/{0} '{1}'", name_, storage_root())});
  }
  RestartBackend();
}

NodeCopiedWorld::~NodeCopiedWorld() {
  EndBackend();
  KillProcesses();
  for (int host = 1; host <= hosts().count(); ++host) {
    hosts().Exec(host, {"/bin/sh", "-c", fmt::format("umount -l '{1}'; rm -rf /srv/{0}", name_, storage_root())});
  }
}

node::NodeOptions NodeCopiedWorld::options() const {
  node::NodeOptions options = NodeWorld::options();
  options.copied = true;
  return options;
}

std::string NodeCopiedWorld::On(int host, const std::string& path) const {
  return fmt::format("{}/hosts/{}/local/{}{}", hosts().directory(), host, name_, path.substr(storage_root().size()));
}

std::string NodeCopiedWorld::SeenBy(int rank, const std::string& path) const {
  const std::string there = On(rank + 1, path);
  return std::filesystem::exists(path) && !std::filesystem::exists(there) ? path : there;
}

}  // namespace tp::conformance
