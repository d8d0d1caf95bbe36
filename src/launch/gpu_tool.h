// Looks at this machine's cards through nvidia-smi and the kernel's log. Thread-safe; each call blocks until the tools
// end or `deadline`.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/subprocess.h"
#include "launch/gpu_report.h"
#include "tp/launch.h"
#include "tp/nodes.h"

namespace tp::launch {

inline constexpr char kToolPath[] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

class GpuTool {
 public:
  // `directories`: where the tools are looked for, as in PATH.
  explicit GpuTool(const std::string& directories = kToolPath);

  bool available() const { return !nvidia_smi_.empty(); }

  // Needs available(). A tool that hangs, as it does on some broken cards, is DEADLINE_EXCEEDED and says nothing of any
  // one of them. It is not begun again for five minutes, UNAVAILABLE: it cannot be killed there, and would pile up.
  absl::StatusOr<GpuLook> Look(absl::Time deadline) const;

 private:
  absl::StatusOr<CommandResult> Query(std::string_view query, absl::Time deadline) const;

  std::string nvidia_smi_;
  std::string dmesg_;                               // empty: the kernel's log is not looked at
  mutable std::atomic<int64_t> not_before_ms_ = 0;  // by the time since boot
};

// All cards of these nodes, which are this machine whatever they are called; none where it has no nvidia-smi.
absl::StatusOr<std::vector<CardSight>> SightsOf(const GpuTool& tool, const std::vector<NodeCards>& nodes,
                                                absl::Time deadline);

// Why a job may not begin on the real cards that its ranks are given, all of this machine, now; empty: it may, or
// nothing can be said.
std::string Preflight(const GpuTool& tool, const LaunchSpec& spec, absl::Time deadline);

}  // namespace tp::launch
