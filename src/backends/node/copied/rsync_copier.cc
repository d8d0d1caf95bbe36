#include "backends/node/copied/rsync_copier.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>

#include <fmt/format.h>

#include "backends/node/host_script.h"
#include "backends/node/ssh_failure.h"
#include "base/printable.h"
#include "base/status.h"
#include "base/subprocess.h"

namespace tp::node {
namespace {

constexpr char kRsync[] = "/usr/bin/rsync";
constexpr char kSetpriv[] = "/usr/bin/setpriv";
constexpr char kFlock[] = "/usr/bin/flock";
constexpr std::string_view kMunged = "/rsyncd-munged/";
constexpr size_t kMaxRsyncErrors = 64 * 1024;

// Exit codes of rsync(1).
constexpr int kRsyncUsage = 1;
constexpr int kRsyncProtocol = 2;
constexpr int kRsyncPartly = 23;
constexpr int kRsyncVanished = 24;
constexpr int kRsyncNotThere = 127;

// A word of -e: blanks separate, a quote within quotes of its kind is doubled.
std::string QuoteForRsync(std::string_view word) {
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? "''" : std::string(1, c);
  return quoted + "'";
}

std::string RemoteDirectory(const RankHost& host, const std::string& path) {
  const bool brackets = host.address.find(':') != std::string::npos;
  return brackets ? fmt::format("[{}]:{}/", host.address, path) : fmt::format("{}:{}/", host.address, path);
}

std::vector<std::string> CopierEnvironment() {
  std::vector<std::string> env = {"LC_ALL=C"};
  for (const char* name : {"PATH", "HOME", "USER", "LOGNAME"}) {
    const char* value = std::getenv(name);
    if (value != nullptr) env.push_back(fmt::format("{}={}", name, value));
  }
  return env;
}

bool Says(std::string_view err, std::string_view words) { return err.find(words) != std::string_view::npos; }

// The line that says most: the first; the last ones only sum up.
std::string_view FirstLine(std::string_view err) {
  const size_t begin = err.find_first_not_of("\r\n");
  if (begin == std::string_view::npos) return {};
  err.remove_prefix(begin);
  return err.substr(0, err.find_first_of("\r\n"));
}

}  // namespace

std::string UsableLink(const std::string& text) {
  return text.starts_with(kMunged) ? text.substr(kMunged.size()) : text;
}

std::vector<std::string> RsyncArguments(const CopyOrder& order, const std::vector<std::string>& ssh) {
  std::vector<std::string> argv = {kRsync,
                                   "--recursive",
                                   "--links",
                                   "--perms",
                                   "--times",
                                   "--omit-dir-times",
                                   "--sparse",
                                   "--modify-window=-1",
                                   "--secluded-args",
                                   "--partial-dir=.tp-partial",
                                   "--timeout=60",
                                   "--info=progress2",
                                   "--no-human-readable",
                                   "--no-inc-recursive",
                                   "--outbuf=L"};
  std::string shell;
  for (const std::string& word : ssh) shell += (shell.empty() ? "" : " ") + QuoteForRsync(word);
  argv.push_back("--rsh=" + shell);
  argv.push_back(order.mark.empty() ? "--rsync-path=rsync"
                                    : fmt::format("--rsync-path=env {} rsync", Quote("TP_COPY_MARK=" + order.mark)));
  for (const std::string& filter : order.filters) argv.push_back("--filter=" + filter);
  for (const std::string& tree : order.except_as_in) argv.push_back("--compare-dest=" + tree);
  if (order.only_missing) argv.emplace_back("--ignore-existing");
  if (order.delete_others) argv.emplace_back("--delete");
  const bool to_host = order.direction == CopyDirection::kToHost;
  if (!to_host) argv.insert(argv.end(), {"--munge-links", "--chmod=ug-s"});
  argv.emplace_back("--");
  argv.push_back(to_host ? order.source + "/" : RemoteDirectory(order.host, order.source));
  argv.push_back(to_host ? RemoteDirectory(order.host, order.target) : order.target + "/");
  return argv;
}

int64_t BytesInProgress(std::string_view output) {
  const size_t end = output.find_last_of("\r\n");
  if (end == std::string_view::npos) return -1;
  output = output.substr(0, end);
  const size_t begin = output.find_last_of("\r\n");
  if (begin != std::string_view::npos) output.remove_prefix(begin + 1);
  std::string digits;
  for (const char c : output) {
    if (c >= '0' && c <= '9') digits += c;
    if (c == ' ' && !digits.empty()) break;
    if (c == '%') return -1;
  }
  int64_t bytes = -1;
  std::from_chars(digits.data(), digits.data() + digits.size(), bytes);
  return bytes;
}

absl::Status JudgeRsync(const CopyOrder& order, int exit_code, int term_signal, std::string_view err) {
  const std::string& node = order.host.node;
  if (exit_code == 0 || exit_code == kRsyncVanished) return absl::OkStatus();
  const std::string said = Quoted(FirstLine(err));
  if (Says(err, "No space left on device") || Says(err, "Disk quota exceeded")) {
    const bool there = order.direction == CopyDirection::kToHost;
    return Error(absl::StatusCode::kResourceExhausted, "{} is full: free some of it, or ask an admin to",
                 there ? fmt::format("the disk of {} that holds {}", node, order.target)
                       : fmt::format("tpd's disk that holds {}", order.target));
  }
  if (exit_code == kRsyncNotThere || Says(err, "rsync: command not found") || Says(err, "'rsync': No such file")) {
    return FailedPrecondition("{} has no rsync: install the package rsync there", node);
  }
  if (Says(err, "is your shell clean")) {
    return FailedPrecondition(
        "the login on {} prints something by itself, which breaks rsync: have ~/.bashrc or the "
        "like there print only in interactive shells",
        node);
  }
  if (exit_code == kRsyncUsage || exit_code == kRsyncProtocol) {
    return FailedPrecondition("the rsync of {} does not do what is needed (version 3.1.3 or later): {}", node, said);
  }
  if (exit_code == 255) return Unavailable("{} {}", node, JudgeSsh(exit_code, err, false).why);
  if (exit_code == kRsyncPartly) return Unavailable("not all files of {} could be copied: {}", node, said);
  return Unavailable("the copy broke off: rsync with {} ended with {}: {}", node,
                     term_signal != 0 ? fmt::format("signal {}", term_signal) : std::to_string(exit_code), said);
}

absl::Status RsyncCopier::Copy(const CopyOrder& order, const std::function<void(int64_t bytes)>& progress,
                               int cancel_fd, absl::Time deadline) {
  Command command{.argv = {kSetpriv, "--pdeathsig", "KILL"},
                  .env = CopierEnvironment(),
                  .stdin_bytes = {},
                  .max_output_bytes = kMaxRsyncErrors,
                  .cancel_fd = cancel_fd};
  if (!order.lock.empty()) command.argv.insert(command.argv.end(), {kFlock, "--no-fork", "--exclusive", order.lock});
  const std::vector<std::string> rsync = RsyncArguments(order, ssh_(order.host));
  command.argv.insert(command.argv.end(), rsync.begin(), rsync.end());
  std::string line;
  command.on_output = [&](std::string_view bytes) {
    line.append(bytes);
    const int64_t so_far = BytesInProgress(line);
    const size_t end = line.find_last_of("\r\n");
    if (so_far >= 0 && progress) progress(so_far);
    // The last whole line stays: the next one is told apart by its end.
    if (end != std::string::npos) line.erase(0, end);
    if (line.size() > kMaxRsyncErrors) line.clear();
  };
  const absl::StatusOr<CommandResult> result = RunCommand(command, deadline);
  if (absl::IsNotFound(result.status())) {
    return FailedPrecondition(
        "tpd's machine lacks one of rsync, setpriv and flock: install the packages rsync and "
        "util-linux ({})",
        Message(result.status()));
  }
  if (absl::IsDeadlineExceeded(result.status())) {
    return Unavailable("the copy did not come to its end in time on {}", order.host.node);
  }
  TP_RETURN_IF_ERROR(result.status());
  if (result->exit_code == kRsyncNotThere && Says(result->err, kRsync)) {
    return FailedPrecondition("tpd's machine has no rsync: install the package rsync");
  }
  return JudgeRsync(order, result->exit_code, result->term_signal, result->err);
}

}  // namespace tp::node
