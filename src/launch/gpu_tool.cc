#include "launch/gpu_tool.h"

#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <sstream>

#include "absl/time/clock.h"
#include "base/since_boot.h"
#include "base/status.h"

namespace tp::launch {
namespace {

constexpr size_t kMaxLogBytes = size_t{4} << 20;
constexpr absl::Duration kHungPause = absl::Minutes(5);

std::string Find(const std::string& directories, const std::string& program) {
  std::istringstream list(directories);
  for (std::string directory; std::getline(list, directory, ':');) {
    const std::string path = directory + "/" + program;
    if (directory.starts_with('/') && access(path.c_str(), X_OK) == 0) return path;
  }
  return "";
}

double ReadUptime() {
  timespec now{};
  if (clock_gettime(CLOCK_BOOTTIME, &now) != 0) return 0;
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

}  // namespace

GpuTool::GpuTool(const std::string& directories)
    : nvidia_smi_(Find(directories, "nvidia-smi")), dmesg_(Find(directories, "dmesg")) {}

absl::StatusOr<CommandResult> GpuTool::Query(std::string_view query, absl::Time deadline) const {
  if (absl::ToInt64Milliseconds(SinceBoot()) < not_before_ms_) {
    return Unavailable("nvidia-smi hung less than {} ago and is not asked", absl::FormatDuration(kHungPause));
  }
  const Command command{.argv = {nvidia_smi_, std::string(query), std::string(kQueryFormat)},
                        .env = {"LC_ALL=C", "PATH=/usr/sbin:/usr/bin:/sbin:/bin"},
                        .stdin_bytes = {}};
  absl::StatusOr<CommandResult> result = RunCommand(command, deadline);
  if (absl::IsDeadlineExceeded(result.status())) {
    not_before_ms_ = absl::ToInt64Milliseconds(SinceBoot() + kHungPause);
  }
  if (result.ok()) result->out += "\n" + result->err;
  return result;
}

absl::StatusOr<GpuLook> GpuTool::Look(absl::Time deadline) const {
  GpuLook look;
  TP_ASSIGN_OR_RETURN(const CommandResult cards, Query(kGpuQuery, deadline));
  look.report = ParseGpuQuery(cards.out, cards.exit_code);
  TP_ASSIGN_OR_RETURN(const CommandResult processes, Query(kProcessQuery, deadline));
  if (look.report.cut_short.empty() && processes.exit_code != 0) {
    return Unavailable("nvidia-smi does not tell what computes on the cards: {}", processes.out);
  }
  look.processes = ParseGpuProcesses(processes.out);
  look.uptime_s = ReadUptime();
  look.at = absl::Now();
  if (dmesg_.empty()) return look;
  // Where it may not be read, the card's own word has to do.
  const auto log = RunCommand(
      {.argv = {dmesg_}, .env = {"LC_ALL=C"}, .stdin_bytes = {}, .max_output_bytes = kMaxLogBytes}, deadline);
  if (log.ok() && log->exit_code == 0) look.xids = ParseXids(log->out);
  return look;
}

absl::StatusOr<std::vector<CardSight>> SightsOf(const GpuTool& tool, const std::vector<NodeCards>& nodes,
                                                absl::Time deadline) {
  std::vector<CardSight> cards;
  if (!tool.available() || nodes.empty()) return cards;
  TP_ASSIGN_OR_RETURN(const GpuLook look, tool.Look(deadline));
  for (const NodeCards& node : nodes) AddSights(look, node, cards);
  return cards;
}

std::string Preflight(const GpuTool& tool, const LaunchSpec& spec, absl::Time deadline) {
  const bool any = std::any_of(spec.ranks.begin(), spec.ranks.end(),
                               [&](const RankLaunch& rank) { return !RealCardsOf(spec, rank).empty(); });
  if (!any || !tool.available()) return "";
  const absl::StatusOr<GpuLook> look = tool.Look(deadline);
  return look.ok() ? PreflightProblem(*look, spec) : "";
}

}  // namespace tp::launch
