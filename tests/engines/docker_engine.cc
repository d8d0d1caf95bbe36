#include "tests/engines/docker_engine.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "absl/time/clock.h"
#include "base/subprocess.h"

namespace tp::testing {
namespace {

constexpr absl::Duration kLimit = absl::Seconds(90);
constexpr char kPath[] = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

}  // namespace

// What an earlier test that was killed has left is gone first.
DockerEngine::DockerEngine(int id, EngineKind kind) : id_(id), kind_(kind) {
  Purge();
  Do("up");
}

DockerEngine::~DockerEngine() { Purge(); }

const char* DockerEngine::Script() const {
  switch (kind_) {
    case EngineKind::kDocker:
    case EngineKind::kDockerLive:
      return TP_TEST_ENGINES "/docker-engine";
    case EngineKind::kPodman:
      return TP_TEST_ENGINES "/podman-engine";
  }
  return "";
}

void DockerEngine::Purge() const {
  RunCommand(
      {.argv = {Script(), "down", "--purge"}, .env = {kPath, fmt::format("TP_DOCKER_ID={}", id_)}, .stdin_bytes = {}},
      absl::Now() + kLimit)
      .status()
      .IgnoreError();
}

std::string DockerEngine::address() const { return fmt::format("unix:///tmp/tp-docker-{}/docker.sock", id_); }

void DockerEngine::Do(const std::string& word) const {
  const auto result = RunCommand({.argv = {Script(), word},
                                  .env = {kPath, fmt::format("TP_DOCKER_ID={}", id_),
                                          fmt::format("TP_DOCKER_LIVE={}", kind_ == EngineKind::kDockerLive ? 1 : 0)},
                                  .stdin_bytes = {}},
                                 absl::Now() + kLimit);
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_EQ(result->exit_code, 0) << word << ": " << result->err;
}

std::string DockerEngine::Docker(const std::vector<std::string>& words) const {
  Command command{.argv = {"/usr/bin/docker"}, .env = {kPath, "DOCKER_HOST=" + address()}, .stdin_bytes = {}};
  command.argv.insert(command.argv.end(), words.begin(), words.end());
  const auto result = RunCommand(command, absl::Now() + kLimit);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? result->out : "";
}

}  // namespace tp::testing
