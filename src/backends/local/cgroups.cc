#include "backends/local/cgroups.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <memory>
#include <sstream>

#include <fmt/format.h>

#include "absl/time/clock.h"
#include "base/file.h"
#include "base/status.h"

namespace tp::local {
namespace {

// A runner is gone shortly after its end record is there.
constexpr absl::Duration kRunnerLeaves = absl::Milliseconds(500);
constexpr absl::Duration kLookAgain = absl::Milliseconds(2);

// /proc/self/mountinfo: `... mount-point options [tags] - type ...`.
std::string FindCgroup2Mount() {
  std::ifstream mounts("/proc/self/mountinfo");
  std::string line;
  while (std::getline(mounts, line)) {
    const size_t dash = line.find(" - cgroup2 ");
    if (dash == std::string::npos) continue;
    std::istringstream fields(line);
    std::string skipped;
    std::string mount_point;
    if (fields >> skipped >> skipped >> skipped >> skipped >> mount_point) return mount_point;
  }
  return "";
}

// /proc/self/cgroup: version 2 is the line `0::<path>`.
std::string FindOwnGroup() {
  std::ifstream groups("/proc/self/cgroup");
  std::string line;
  while (std::getline(groups, line)) {
    if (line.starts_with("0::/")) return line.substr(3);
  }
  return "";
}

// Without write access to the parent's cgroup.procs a process cannot move itself into a child.
bool IsUsable(const std::string& path) { return access((path + "/cgroup.procs").c_str(), W_OK) == 0; }

absl::Status RemoveOnce(const std::string& path) {
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(opendir(path.c_str()), closedir);
  if (!stream) return errno == ENOENT ? absl::OkStatus() : ErrnoStatus(errno, "list", path);
  while (const dirent* entry = readdir(stream.get())) {
    const std::string name = entry->d_name;
    if (entry->d_type != DT_DIR || name == "." || name == "..") continue;
    const std::string child = fmt::format("{}/{}", path, name);
    if (rmdir(child.c_str()) != 0 && errno != ENOENT) return ErrnoStatus(errno, "remove the cgroup", child);
  }
  return rmdir(path.c_str()) == 0 || errno == ENOENT ? absl::OkStatus() : ErrnoStatus(errno, "remove the cgroup", path);
}

}  // namespace

std::string FindCgroupParent(const std::string& deployment) {
  const std::string mount = FindCgroup2Mount();
  if (mount.empty()) return "";
  // At the top as root, so that the end of tpd's own group is not theirs; else where it was delegated.
  for (const std::string& base : {mount, mount + FindOwnGroup()}) {
    const std::string parent = fmt::format("{}/tp-{}", base, deployment);
    if (IsUsable(base) && MakeCgroup(parent).ok() && IsUsable(parent)) return parent;
  }
  return "";
}

absl::Status MakeCgroup(const std::string& path) {
  return mkdir(path.c_str(), 0755) == 0 || errno == EEXIST ? absl::OkStatus()
                                                           : ErrnoStatus(errno, "make the cgroup", path);
}

absl::Status RemoveCgroups(const std::string& path, absl::Time deadline) {
  const absl::Time patience = std::min(deadline, absl::Now() + kRunnerLeaves);
  absl::Status status = RemoveOnce(path);
  while (!status.ok() && absl::Now() < patience) {
    absl::SleepFor(kLookAgain);
    status = RemoveOnce(path);
  }
  return status;
}

}  // namespace tp::local
