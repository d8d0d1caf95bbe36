// Looks at this machine's cards through nvidia-smi and the kernel's log. Thread-safe: no state; each call blocks until
// the tools end or `deadline`.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "launch/gpu_report.h"

namespace tp::launch {

class GpuTool {
 public:
  // `directories`: where the tools are looked for, as in PATH.
  explicit GpuTool(const std::string& directories = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");

  bool available() const { return !nvidia_smi_.empty(); }

  // Of the first `expected` cards. Needs available(). A tool that hangs, as it does on some broken cards, is
  // DEADLINE_EXCEEDED and says nothing of any one of them.
  absl::StatusOr<std::vector<BrokenCard>> FindBroken(int expected, absl::Time deadline) const;

 private:
  std::string nvidia_smi_;
  std::string dmesg_;  // empty: the kernel's log is not looked at
};

}  // namespace tp::launch
