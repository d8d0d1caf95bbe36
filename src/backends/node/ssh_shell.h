// The RemoteShell of real machines: the system's ssh, a process for each call, over one connection a host that
// stays open between calls (ControlMaster). Only keys in the given known_hosts are trusted, nothing is ever asked,
// and no agent, forwarding or password is used.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "backends/node/remote_shell.h"
#include "base/fd.h"

namespace tp::node {

struct SshOptions {
  std::string user;           // empty: as config_file or ssh has it
  int port = 0;               // 0: the same
  std::string identity_file;  // empty: the same
  std::string known_hosts;    // empty: the file of tpd's user
  std::string config_file;    // empty: none, also not that of tpd's user
};

class SshShell final : public RemoteShell {
 public:
  // Makes `control_directory` (0700), where the connections' sockets are. INVALID_ARGUMENT where its path is too long
  // for a socket.
  static absl::StatusOr<std::unique_ptr<SshShell>> Create(SshOptions options, std::string control_directory,
                                                          absl::Duration connect_timeout);

  RemoteResult Run(const RankHost& host, const RemoteProgram& program, absl::Time deadline) override;
  void Cancel() override;

  // The words before an address, for programs that carry much and run ssh themselves: the same options over
  // connections of their own.
  std::vector<std::string> WordsForCopies(const RankHost& host) const;

 private:
  SshShell(SshOptions options, std::string control_directory, absl::Duration connect_timeout, UniqueFd cancel);
  enum class Use { kPrograms, kCopies };
  std::vector<std::string> Arguments(const RankHost& host, absl::Duration left, Use use = Use::kPrograms) const;
  void LeaveConnection(const RankHost& host) const;

  const SshOptions options_;
  const std::string control_directory_;
  const absl::Duration connect_timeout_;
  const UniqueFd cancel_;  // readable once cancelled
};

}  // namespace tp::node
