// The Copier of real machines: the system's rsync, a process for each call, over ssh connections of its own, so that
// what it carries does not hold up looks. It ends with tpd.
//
// A host is not trusted: links that it sends are kept in a form that nothing can follow while the copy goes on
// (--munge-links), set-id bits are dropped, and the target is a directory made for this one copy.
#pragma once

#include <string>
#include <vector>

#include "backends/node/copied/copier.h"
#include "backends/node/ssh_shell.h"

namespace tp::node {

class RsyncCopier final : public Copier {
 public:
  // `ssh`: the words before an address, for the host of an order.
  explicit RsyncCopier(std::function<std::vector<std::string>(const RankHost& host)> ssh) : ssh_(std::move(ssh)) {}

  absl::Status Copy(const CopyOrder& order, const std::function<void(int64_t bytes)>& progress, int cancel_fd,
                    absl::Time deadline) override;

 private:
  const std::function<std::vector<std::string>(const RankHost& host)> ssh_;
};

// --- Pure parts -----------------------------------------------------------------------------------------

// The words of rsync itself.
std::vector<std::string> RsyncArguments(const CopyOrder& order, const std::vector<std::string>& ssh);

// The bytes told by the newest line of --info=progress2; below 0: none yet.
int64_t BytesInProgress(std::string_view output);

absl::Status JudgeRsync(const CopyOrder& order, int exit_code, int term_signal, std::string_view err);

}  // namespace tp::node
