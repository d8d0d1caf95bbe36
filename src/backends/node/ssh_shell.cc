#include "backends/node/ssh_shell.h"

#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include <fmt/format.h>

#include "absl/time/clock.h"
#include "backends/node/host_reply.h"
#include "backends/node/host_script.h"
#include "backends/node/ssh_failure.h"
#include "base/file.h"
#include "base/sha256.h"
#include "base/status.h"
#include "base/subprocess.h"

namespace tp::node {
namespace {

constexpr char kSsh[] = "/usr/bin/ssh";
constexpr size_t kMaxAnswerBytes = 4 * 1024 * 1024;
// sun_path holds 108 bytes; ssh adds a dot and 16 characters to the name while it makes a socket.
constexpr size_t kMaxSocketPath = 107 - 17;
constexpr size_t kSocketNameChars = 12;
constexpr absl::Duration kLeaveLimit = absl::Seconds(1);
constexpr absl::Duration kNoFurtherUse = absl::Minutes(5);

// An address becomes a word of ssh's command line: nothing that could be an option, a user or a proxy.
bool IsAddress(const std::string& address) {
  constexpr std::string_view kChars = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:%-";
  return !address.empty() && address.size() <= 253 && address.find_first_not_of(kChars) == std::string::npos &&
         address[0] != '-' && address[0] != '%';
}

std::vector<std::string> SshEnvironment() {
  std::vector<std::string> env = {"LC_ALL=C"};
  for (const char* name : {"PATH", "HOME", "USER", "LOGNAME"}) {
    const char* value = std::getenv(name);
    if (value != nullptr) env.push_back(fmt::format("{}={}", name, value));
  }
  return env;
}

std::string QuoteConfig(const std::string& path) { return fmt::format("\"{}\"", path); }

}  // namespace

absl::StatusOr<std::unique_ptr<SshShell>> SshShell::Create(SshOptions options, std::string control_directory,
                                                           absl::Duration connect_timeout) {
  if (control_directory.size() + 1 + kSocketNameChars > kMaxSocketPath) {
    return InvalidArgument("{} is too long a path for ssh's sockets ({} bytes at most): choose another data directory",
                           control_directory, kMaxSocketPath - 1 - kSocketNameChars);
  }
  for (const std::string* path : {&control_directory, &options.known_hosts, &options.identity_file}) {
    if (path->find_first_of("\"\n%") != std::string::npos) {
      return InvalidArgument("ssh cannot be given the path {}: it holds a quote, a percent sign or a line end", *path);
    }
  }
  if (mkdir(control_directory.c_str(), 0700) != 0 && errno != EEXIST) {
    return ErrnoStatus(errno, "make the directory", control_directory);
  }
  struct stat about {};
  if (lstat(control_directory.c_str(), &about) != 0) return ErrnoStatus(errno, "look at", control_directory);
  if (!S_ISDIR(about.st_mode) || about.st_uid != geteuid() || (about.st_mode & 077) != 0) {
    return FailedPrecondition("{} must be a directory of tpd's user with mode 0700: remove it, tpd makes it anew",
                              control_directory);
  }
  UniqueFd cancel(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!cancel.valid()) return ErrnoStatus(errno, "make", "an eventfd");
  return std::unique_ptr<SshShell>(
      new SshShell(std::move(options), std::move(control_directory), connect_timeout, std::move(cancel)));
}

SshShell::SshShell(SshOptions options, std::string control_directory, absl::Duration connect_timeout, UniqueFd cancel)
    : options_(std::move(options)),
      control_directory_(std::move(control_directory)),
      connect_timeout_(connect_timeout),
      cancel_(std::move(cancel)) {}

void SshShell::Cancel() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(cancel_.get(), &one, sizeof one);
}

std::vector<std::string> SshShell::WordsForCopies(const RankHost& host) const {
  return Arguments(host, connect_timeout_, Use::kCopies);
}

// The first value of an option counts, so these stand above whatever the configuration says.
std::vector<std::string> SshShell::Arguments(const RankHost& host, absl::Duration left, Use use) const {
  const int64_t connect_s = std::max<int64_t>(1, absl::ToInt64Seconds(std::min(connect_timeout_, left)));
  Sha256 name;
  name.Update(
      fmt::format("{}\n{}\n{}{}", host.address, options_.user, options_.port, use == Use::kCopies ? "\ncopies" : ""));
  const std::string socket = control_directory_ + "/" + name.HexDigest().substr(0, kSocketNameChars);
  std::vector<std::string> argv = {
      kSsh,
      "-F",
      options_.config_file.empty() ? "/dev/null" : options_.config_file,
      "-T",
      "-o",
      "ControlMaster=auto",
      "-o",
      "ControlPath=" + QuoteConfig(socket),
  };
  const auto set = [&argv](std::string option) {
    argv.emplace_back("-o");
    argv.push_back(std::move(option));
  };
  set(fmt::format("ControlPersist={}", absl::ToInt64Seconds(kNoFurtherUse)));
  set("BatchMode=yes");
  set("StrictHostKeyChecking=yes");
  set("UpdateHostKeys=no");
  set("CheckHostIP=no");
  set("PasswordAuthentication=no");
  set("KbdInteractiveAuthentication=no");
  set("IdentityAgent=none");
  set("IdentitiesOnly=yes");
  set("ForwardAgent=no");
  set("ForwardX11=no");
  set("ClearAllForwardings=yes");
  set("PermitLocalCommand=no");
  set("RequestTTY=no");
  set("RemoteCommand=none");
  set("EscapeChar=none");
  set("ConnectionAttempts=1");
  set(fmt::format("ConnectTimeout={}", connect_s));
  set("ServerAliveInterval=5");
  set("ServerAliveCountMax=3");
  set("TCPKeepAlive=yes");
  set("LogLevel=ERROR");
  if (!options_.known_hosts.empty()) {
    set("UserKnownHostsFile=" + QuoteConfig(options_.known_hosts));
    set("GlobalKnownHostsFile=/dev/null");
  }
  if (!options_.identity_file.empty()) set("IdentityFile=" + QuoteConfig(options_.identity_file));
  if (!options_.user.empty()) set("User=" + options_.user);
  if (options_.port != 0) set(fmt::format("Port={}", options_.port));
  return argv;
}

RemoteResult SshShell::Run(const RankHost& host, const RemoteProgram& program, absl::Time deadline) {
  if (!IsAddress(host.address)) {
    return TransportFailure{TransportKind::kUnknownName,
                            fmt::format("has no usable address in the registry: '{}'", host.address), false};
  }
  const absl::Time began = absl::Now();
  const std::string token = RandomName();
  const std::string text = Frame(program.text, token);
  Command command{.argv = Arguments(host, deadline - began),
                  .env = SshEnvironment(),
                  .stdin_bytes = text + program.body,
                  .max_output_bytes = kMaxAnswerBytes,
                  .cancel_fd = cancel_.get()};
  command.argv.insert(command.argv.end(), {"--", host.address, Bootstrap(text.size())});
  const absl::StatusOr<CommandResult> result = RunCommand(command, deadline);
  if (absl::IsDeadlineExceeded(result.status())) {
    LeaveConnection(host);
    return TimedOut(absl::Now() - began);
  }
  if (absl::IsCancelled(result.status())) {
    return TransportFailure{TransportKind::kCancelled, "is no longer asked: tpd ends", true};
  }
  if (!result.ok()) {
    return TransportFailure{TransportKind::kLocal, fmt::format("is not asked: {}", Message(result.status())), false};
  }
  FramedReply reply = ParseFrame(result->out, token);
  if (reply.whole) return *std::move(reply.whole);
  return JudgeSsh(result->exit_code, result->err, reply.begun);
}

// A connection that hangs is left to itself: what else is under way on it may still end well, and the next call makes
// a new one.
void SshShell::LeaveConnection(const RankHost& host) const {
  std::vector<std::string> argv = Arguments(host, kLeaveLimit);
  argv.insert(argv.end(), {"-O", "stop", "--", host.address});
  RunCommand({.argv = std::move(argv), .env = SshEnvironment(), .stdin_bytes = {}, .cancel_fd = cancel_.get()},
             absl::Now() + kLeaveLimit)
      .IgnoreError();
}

}  // namespace tp::node
