#include "launch/gpu_tool.h"

#include <unistd.h>

#include <sstream>

#include "base/status.h"
#include "base/subprocess.h"

namespace tp::launch {
namespace {

constexpr size_t kMaxLogBytes = size_t{4} << 20;

std::string Find(const std::string& directories, const std::string& program) {
  std::istringstream list(directories);
  for (std::string directory; std::getline(list, directory, ':');) {
    const std::string path = directory + "/" + program;
    if (directory.starts_with('/') && access(path.c_str(), X_OK) == 0) return path;
  }
  return "";
}

}  // namespace

GpuTool::GpuTool(const std::string& directories)
    : nvidia_smi_(Find(directories, "nvidia-smi")), dmesg_(Find(directories, "dmesg")) {}

absl::StatusOr<std::vector<BrokenCard>> GpuTool::FindBroken(int expected, absl::Time deadline) const {
  const Command query{.argv = {nvidia_smi_, std::string(kGpuQuery), "--format=csv,noheader,nounits"},
                      .env = {"LC_ALL=C", "PATH=/usr/sbin:/usr/bin:/sbin:/bin"},
                      .stdin_bytes = {}};
  TP_ASSIGN_OR_RETURN(const CommandResult cards, RunCommand(query, deadline));
  std::vector<Xid> xids;
  if (!dmesg_.empty()) {
    // Where it may not be read, the card's own word has to do.
    const auto log = RunCommand(
        {.argv = {dmesg_}, .env = {"LC_ALL=C"}, .stdin_bytes = {}, .max_output_bytes = kMaxLogBytes}, deadline);
    if (log.ok() && log->exit_code == 0) xids = ParseXids(log->out);
  }
  return FindBrokenCards(ParseGpuQuery(cards.out + "\n" + cards.err), xids, expected);
}

}  // namespace tp::launch
