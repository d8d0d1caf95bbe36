#include "tests/conformance/docker_world.h"

#include <filesystem>
#include <sstream>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace tp::conformance {

DockerWorld::DockerWorld(const tp::testing::DockerEngine& engine, std::string rank_binary)
    : ProcessWorld(std::move(rank_binary)), engine_(engine) {
  std::filesystem::copy_file(At("program.sh"), storage_root() + "/program.sh");
  MendEngine();
  RestartBackend();
}

DockerWorld::~DockerWorld() {
  backend_.reset();
  std::istringstream ids(
      engine_.Docker({"ps", "-aq", "--filter", fmt::format("label={}={}", docker::kDeploymentLabel, deployment())}));
  std::vector<std::string> remove = {"rm", "-f"};
  for (std::string id; std::getline(ids, id);) remove.push_back(id);
  if (remove.size() > 2) engine_.Docker(remove);
  std::istringstream networks(engine_.Docker(
      {"network", "ls", "-q", "--filter", fmt::format("label={}={}", docker::kDeploymentLabel, deployment())}));
  for (std::string id; std::getline(networks, id);) engine_.Docker({"network", "rm", id});
}

docker::DockerOptions DockerWorld::options() const {
  docker::DockerOptions options;
  options.deployment = deployment();
  options.storage_root = storage_root();
  options.rank_binary = rank_binary();
  options.address.host = "unix://" + At("engine.sock");
  return options;
}

void DockerWorld::RestartBackend() {
  backend_.reset();
  auto created = docker::DockerBackend::Create(options());
  ASSERT_TRUE(created.ok()) << created.status();
  backend_ = *std::move(created);
}

void DockerWorld::CutEngine() { std::filesystem::remove(At("engine.sock")); }

void DockerWorld::MendEngine() {
  const std::string socket = engine_.address().substr(std::string_view("unix://").size());
  std::filesystem::create_symlink(socket, At("engine.sock"));
}

void DockerWorld::Place(LaunchSpec& spec) {
  spec.image = tp::testing::DockerEngine::image();
  for (RankLaunch& rank : spec.ranks) rank.placement.address = fmt::format("rank{}", rank.rank);
}

void DockerWorld::TermFromOutside(const LaunchSpec& spec, int pool, int rank) {
  RunnerOf(spec, pool, rank);
  engine_.Docker({"kill", "--signal", "TERM", docker::ContainerName(spec.key, pool, rank)});
}

void DockerWorld::KillRunner(const LaunchSpec& spec, int pool, int rank) {
  RunnerOf(spec, pool, rank);
  engine_.Docker({"kill", docker::ContainerName(spec.key, pool, rank)});
}

}  // namespace tp::conformance
