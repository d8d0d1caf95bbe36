#include "backends/local/processes.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string_view>

#include <fmt/format.h>

#include "base/file.h"
#include "base/status.h"

namespace tp::local {
namespace {

// Files of /proc have no size to go by. Nothing where the process is gone or not ours to look at.
std::optional<std::string> ReadProcFile(pid_t pid, const char* name) {
  const std::string path = fmt::format("/proc/{}/{}", pid, name);
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return std::nullopt;
  std::string bytes;
  std::array<char, 4096> buffer{};
  for (;;) {
    const ssize_t got = read(fd.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return std::nullopt;
    if (got == 0) return bytes;
    bytes.append(buffer.data(), static_cast<size_t>(got));
  }
}

std::optional<std::string> FindEntry(const std::string& environment, const std::string& prefix) {
  std::string_view rest = environment;
  while (!rest.empty()) {
    const std::string_view entry = rest.substr(0, rest.find('\0'));
    if (entry.starts_with(prefix)) return std::string(entry.substr(prefix.size()));
    rest.remove_prefix(std::min(rest.size(), entry.size() + 1));
  }
  return std::nullopt;
}

std::optional<pid_t> ParsePid(std::string_view name) {
  pid_t pid = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
  if (error != std::errc() || end != name.data() + name.size()) return std::nullopt;
  return pid;
}

}  // namespace

std::optional<ProcessStat> ReadProcess(pid_t pid) {
  const std::optional<std::string> text = ReadProcFile(pid, "stat");
  if (!text) return std::nullopt;
  const size_t after_name = text->rfind(')');  // the name itself may hold anything
  if (after_name == std::string::npos) return std::nullopt;
  char state = 0;
  int parent = 0;
  long threads = 0;
  unsigned long long start_ticks = 0;
  const int fields = std::sscanf(text->c_str() + after_name + 1,
                                 " %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %ld %*d %llu",
                                 &state, &parent, &threads, &start_ticks);
  if (fields != 4) return std::nullopt;
  const bool ended = (state == 'Z' && threads <= 1) || state == 'X' || state == 'x';
  return ProcessStat{pid, parent, start_ticks, ended};
}

UniqueFd OpenProcess(pid_t pid, uint64_t start_ticks) {
  UniqueFd fd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  // Looked at after it was opened: from here on the pid cannot become another process unnoticed.
  if (fd.valid() && !IsAlive(pid, start_ticks)) fd.reset();
  return fd;
}

bool IsAlive(pid_t pid, uint64_t start_ticks) {
  const std::optional<ProcessStat> process = ReadProcess(pid);
  return process && !process->ended && process->start_ticks == start_ticks;
}

absl::StatusOr<std::vector<MarkedProcess>> FindMarkedProcesses(const std::string& prefix) {
  const std::unique_ptr<DIR, int (*)(DIR*)> proc(opendir("/proc"), closedir);
  if (!proc) return ErrnoStatus(errno, "list", "/proc");
  std::vector<MarkedProcess> found;
  for (;;) {
    errno = 0;
    const dirent* entry = readdir(proc.get());
    if (entry == nullptr) break;
    const std::optional<pid_t> pid = ParsePid(entry->d_name);
    if (!pid) continue;
    const std::optional<std::string> environment = ReadProcFile(*pid, "environ");
    std::optional<std::string> rest = environment ? FindEntry(*environment, prefix) : std::nullopt;
    const std::optional<ProcessStat> stat = rest ? ReadProcess(*pid) : std::nullopt;
    if (stat && !stat->ended) found.push_back({*stat, *std::move(rest)});
  }
  if (errno != 0) return ErrnoStatus(errno, "list", "/proc");
  return found;
}

}  // namespace tp::local
