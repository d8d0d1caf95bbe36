// cgroup v2 directories for the jobs' processes. Thread-safe: no state.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace tp::local {

// `<cgroup2 mount>/tp-<deployment>`, made and proven writable; empty where this machine has no cgroup2
// that this process may use. Jobs then live without one.
std::string FindCgroupParent(const std::string& deployment);

absl::Status MakeCgroup(const std::string& path);

// Removes the group of an attempt, those of its ranks and that of its runners, which may just be leaving:
// waits for them for a moment. Missing is OK; UNAVAILABLE while a process is left in one.
absl::Status RemoveCgroups(const std::string& path, absl::Time deadline);

}  // namespace tp::local
