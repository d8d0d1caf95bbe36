// A real engine with Docker's API on this machine (tests/engines/docker-engine, podman-engine), started with the object
// and gone with it. Needs root.
#pragma once

#include <string>
#include <vector>

namespace tp::testing {

enum class EngineKind {
  kDocker,
  kDockerLive,  // containers survive the next start of dockerd
  kPodman,
};

class DockerEngine {
 public:
  // Fails the test, with a sentence, where it does not come up.
  explicit DockerEngine(int id, EngineKind kind = EngineKind::kDocker);
  ~DockerEngine();
  DockerEngine(const DockerEngine&) = delete;
  DockerEngine& operator=(const DockerEngine&) = delete;

  std::string address() const;  // unix:///...
  static std::string image() { return "tp-busybox:1"; }

  // One command of the script; fails the test where it does not end with 0.
  void Do(const std::string& word) const;
  // The docker command line; what it printed.
  std::string Docker(const std::vector<std::string>& words) const;

 private:
  void Purge() const;
  const char* Script() const;

  const int id_;
  const EngineKind kind_;
};

}  // namespace tp::testing
