#include "tests/conformance/local_world.h"

#include <signal.h>
#include <unistd.h>

#include <filesystem>

#include <gtest/gtest.h>

#include "absl/time/clock.h"
#include "backends/local/cgroups.h"

namespace tp::conformance {

namespace fs = std::filesystem;

LocalWorld::LocalWorld(bool cgroups, std::string rank_binary)
    : ProcessWorld(std::move(rank_binary)), cgroups_(cgroups) {
  RestartBackend();
}

LocalWorld::~LocalWorld() {
  const std::string parent = backend_->cgroup_parent();
  backend_.reset();
  KillProcesses();
  if (parent.empty()) return;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(parent, ignored)) {
    if (entry.is_directory()) local::RemoveCgroups(entry.path().string(), absl::Now()).IgnoreError();
  }
  rmdir(parent.c_str());
}

local::LocalOptions LocalWorld::options() const {
  return {.deployment = deployment(),
          .storage_root = storage_root(),
          .rank_binary = rank_binary(),
          .cgroups = cgroups_,
          .reader = {}};
}

void LocalWorld::RestartBackend() {
  backend_.reset();
  auto created = local::LocalBackend::Create(options());
  ASSERT_TRUE(created.ok()) << created.status();
  backend_ = *std::move(created);
}

void LocalWorld::TermFromOutside(const LaunchSpec& spec, int pool, int rank) {
  const pid_t runner = RunnerOf(spec, pool, rank);
  ASSERT_GT(runner, 1);
  kill(runner, SIGTERM);
}

void LocalWorld::KillRunner(const LaunchSpec& spec, int pool, int rank) {
  const pid_t runner = RunnerOf(spec, pool, rank);
  ASSERT_GT(runner, 1);
  kill(runner, SIGKILL);
}

}  // namespace tp::conformance
