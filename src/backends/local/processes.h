// Processes of this machine, each named by its pid together with its start time in clock ticks since
// boot, so that a reused pid is never taken for it. Thread-safe: no state.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/fd.h"

namespace tp::local {

struct ProcessStat {
  pid_t pid = 0;
  pid_t parent = 0;
  uint64_t start_ticks = 0;
  bool ended = false;  // a zombie: it runs no more and waits for its parent
};

// Nothing where there is no such process.
std::optional<ProcessStat> ReadProcess(pid_t pid);

// Becomes readable when exactly this process ends. Not valid where it is gone already or the machine has
// no descriptor left; IsAlive tells them apart.
UniqueFd OpenProcess(pid_t pid, uint64_t start_ticks);

bool IsAlive(pid_t pid, uint64_t start_ticks);

// Every live process whose environment at its start held an entry that begins with `prefix`, with the
// rest of that entry. Processes that may not be looked at are left out: they are not of tpd's user.
struct MarkedProcess {
  ProcessStat stat;
  std::string rest;
};
absl::StatusOr<std::vector<MarkedProcess>> FindMarkedProcesses(const std::string& prefix);

}  // namespace tp::local
