// Real sshd hosts on this machine (tests/engines/ssh-hosts), started with the object and gone with it. Needs root.
#pragma once

#include <string>
#include <vector>

namespace tp::testing {

class SshHosts {
 public:
  // Fails the test, with a sentence, where they do not come up.
  explicit SshHosts(int count);
  ~SshHosts();
  SshHosts(const SshHosts&) = delete;
  SshHosts& operator=(const SshHosts&) = delete;

  bool up() const { return up_; }
  int count() const { return count_; }
  // Hosts are numbered from 1.
  std::string Node(int host) const;
  std::string Address(int host) const;
  std::string directory() const;
  std::string identity_file() const { return directory() + "/client_key"; }
  std::string known_hosts() const { return directory() + "/known_hosts"; }

  // One command of the script; fails the test where it does not end with 0.
  void Do(const std::vector<std::string>& words) const;
  // Inside a host; what it printed.
  std::string Exec(int host, const std::vector<std::string>& words) const;

 private:
  const int count_;
  int id_ = 0;
  bool up_ = false;
};

}  // namespace tp::testing
