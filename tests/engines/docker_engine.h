// A real docker engine on this machine (tests/engines/docker-engine), started with the object and gone with it. Needs
// root.
#pragma once

#include <string>
#include <vector>

namespace tp::testing {

class DockerEngine {
 public:
  // `live`: containers survive the next start of dockerd. Fails the test, with a sentence, where it does not come up.
  explicit DockerEngine(int id, bool live = false);
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

  const int id_;
  const bool live_;
};

}  // namespace tp::testing
