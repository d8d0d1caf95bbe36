#include "base/subprocess.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <mutex>

#include "absl/time/clock.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/status.h"

namespace tp {
namespace {

// SIGKILL ends whatever does not sleep in the kernel at once.
constexpr int kKillTakesMs = 1000;

struct Pipe {
  UniqueFd read;
  UniqueFd write;
};

absl::StatusOr<Pipe> MakePipe() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return ErrnoStatus(errno, "make", "a pipe");
  Pipe made{UniqueFd(ends[0]), UniqueFd(ends[1])};
  // Only the end kept here: the flag belongs to the open file, which the child's end does not share.
  if (fcntl(made.read.get(), F_SETFL, O_NONBLOCK) != 0) return ErrnoStatus(errno, "set up", "a pipe");
  return made;
}

// A file in memory instead of a pipe: no SIGPIPE, and nothing to pump while the program runs.
absl::StatusOr<UniqueFd> MakeInput(const std::string& bytes) {
  UniqueFd fd(memfd_create("stdin", MFD_CLOEXEC));
  if (!fd.valid()) return ErrnoStatus(errno, "make", "a memory file");
  TP_RETURN_IF_ERROR(WriteAll(fd.get(), bytes, "a memory file"));
  if (lseek(fd.get(), 0, SEEK_SET) != 0) return ErrnoStatus(errno, "rewind", "a memory file");
  return fd;
}

class SpawnSetup {
 public:
  SpawnSetup() {
    posix_spawn_file_actions_init(&actions_);
    posix_spawnattr_init(&attributes_);
  }
  ~SpawnSetup() {
    posix_spawnattr_destroy(&attributes_);
    posix_spawn_file_actions_destroy(&actions_);
  }
  SpawnSetup(const SpawnSetup&) = delete;
  SpawnSetup& operator=(const SpawnSetup&) = delete;

  int Prepare(int in, int out, int err) {
    sigset_t none;
    sigset_t all;
    sigemptyset(&none);
    sigfillset(&all);
    const std::array<int, 7> errors = {
        posix_spawn_file_actions_adddup2(&actions_, in, STDIN_FILENO),
        posix_spawn_file_actions_adddup2(&actions_, out, STDOUT_FILENO),
        posix_spawn_file_actions_adddup2(&actions_, err, STDERR_FILENO),
        posix_spawn_file_actions_addclosefrom_np(&actions_, STDERR_FILENO + 1),
        posix_spawnattr_setsigmask(&attributes_, &none),
        posix_spawnattr_setsigdefault(&attributes_, &all),
        posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF),
    };
    const auto* failed = std::find_if(errors.begin(), errors.end(), [](int error) { return error != 0; });
    return failed == errors.end() ? 0 : *failed;
  }

  const posix_spawn_file_actions_t* actions() const { return &actions_; }
  const posix_spawnattr_t* attributes() const { return &attributes_; }

 private:
  posix_spawn_file_actions_t actions_{};
  posix_spawnattr_t attributes_{};
};

std::vector<char*> Pointers(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

// Children that were killed and did not end, as one that sleeps in a driver: reaped once they do.
class Leftovers {
 public:
  void Add(pid_t pid) {
    const std::lock_guard lock(mutex_);
    pids_.push_back(pid);
  }
  void Reap() {
    const std::lock_guard lock(mutex_);
    std::erase_if(pids_, [](pid_t pid) { return waitpid(pid, nullptr, WNOHANG) != 0; });
  }

 private:
  std::mutex mutex_;
  std::vector<pid_t> pids_;
};

Leftovers& AllLeftovers() {
  static auto& leftovers = *new Leftovers;
  return leftovers;
}

// A child that must be reaped: killed with its group when left early, and waited for as long as that takes where it can
// be killed.
class Child {
 public:
  Child(pid_t pid, UniqueFd pidfd) : pid_(pid), pidfd_(std::move(pidfd)) {}
  ~Child() {
    if (pid_ <= 0) return;
    kill(-pid_, SIGKILL);
    kill(pid_, SIGKILL);
    pollfd ended{pidfd_.get(), POLLIN, 0};
    if (!pidfd_.valid() || poll(&ended, 1, kKillTakesMs) != 0) {
      Wait();
    } else {
      AllLeftovers().Add(pid_);
    }
  }
  Child(Child&& other) noexcept : pid_(std::exchange(other.pid_, 0)), pidfd_(std::move(other.pidfd_)) {}
  Child& operator=(Child&&) = delete;

  int pidfd() const { return pidfd_.get(); }

  siginfo_t Wait() {
    siginfo_t info{};
    while (waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED) != 0 && errno == EINTR) {
    }
    pid_ = 0;
    return info;
  }

 private:
  pid_t pid_;
  UniqueFd pidfd_;
};

absl::StatusOr<Child> Spawn(const Command& command, int in, int out, int err) {
  SpawnSetup setup;
  int error = setup.Prepare(in, out, err);
  const std::vector<char*> argv = Pointers(command.argv);
  const std::vector<char*> env = Pointers(command.env);
  pid_t pid = 0;
  if (error == 0) {
    error = posix_spawn(&pid, argv[0], setup.actions(), setup.attributes(), argv.data(), env.data());
  }
  if (error != 0) return ErrnoStatus(error, "execute", command.argv[0]);
  UniqueFd pidfd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  const int open_error = errno;
  Child child(pid, std::move(pidfd));
  if (child.pidfd() < 0) return ErrnoStatus(open_error, "watch", command.argv[0]);
  return child;
}

// False at end of file.
bool Drain(int fd, std::string& output, size_t max_bytes, const std::function<void(std::string_view)>& on_output) {
  std::array<char, 4096> buffer{};
  for (;;) {
    const ssize_t got = read(fd, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno == EAGAIN;
    if (got == 0) return false;
    if (on_output) on_output({buffer.data(), static_cast<size_t>(got)});
    output.append(buffer.data(), std::min(static_cast<size_t>(got), max_bytes - output.size()));
  }
}

int PollTimeoutMs(absl::Time deadline) {
  const absl::Duration left = deadline - absl::Now();
  if (left <= absl::ZeroDuration()) return 0;
  return static_cast<int>(absl::ToInt64Milliseconds(std::min(left, absl::Hours(1)))) + 1;
}

enum class Followed : uint8_t { kEnded, kDeadline, kCancelled };

// Reads both streams until the child itself has ended, or something else came first.
Followed Follow(int pidfd, int out, int err, const Command& command, CommandResult& result, absl::Time deadline) {
  std::array<pollfd, 4> waits = {
      {{pidfd, POLLIN, 0}, {out, POLLIN, 0}, {err, POLLIN, 0}, {command.cancel_fd, POLLIN, 0}}};
  const size_t max_bytes = command.max_output_bytes;
  for (;;) {
    const int ready = poll(waits.data(), waits.size(), PollTimeoutMs(deadline));
    if (ready < 0 && errno != EINTR) return Followed::kDeadline;
    if (ready == 0 && absl::Now() >= deadline) return Followed::kDeadline;
    const bool ended = ready > 0 && waits[0].revents != 0;
    // What the child wrote before its end is in the pipe by now.
    if ((ended || waits[1].revents != 0) && !Drain(out, result.out, max_bytes, command.on_output)) waits[1].fd = -1;
    if ((ended || waits[2].revents != 0) && !Drain(err, result.err, max_bytes, nullptr)) waits[2].fd = -1;
    if (ended) return Followed::kEnded;
    if (ready > 0 && waits[3].revents != 0) return Followed::kCancelled;
  }
}

}  // namespace

absl::StatusOr<CommandResult> RunCommand(const Command& command, absl::Time deadline) {
  if (command.argv.empty()) return InvalidArgument("no program to run");
  TP_ASSIGN_OR_RETURN(const UniqueFd input, MakeInput(command.stdin_bytes));
  TP_ASSIGN_OR_RETURN(Pipe out, MakePipe());
  TP_ASSIGN_OR_RETURN(Pipe err, MakePipe());
  AllLeftovers().Reap();
  TP_ASSIGN_OR_RETURN(Child child, Spawn(command, input.get(), out.write.get(), err.write.get()));
  out.write.reset();
  err.write.reset();
  CommandResult result;
  switch (Follow(child.pidfd(), out.read.get(), err.read.get(), command, result, deadline)) {
    case Followed::kEnded:
      break;
    case Followed::kDeadline:
      return Error(absl::StatusCode::kDeadlineExceeded, "{} did not end in time and was killed", command.argv[0]);
    case Followed::kCancelled:
      return Error(absl::StatusCode::kCancelled, "{} was killed: nobody waits for it any more", command.argv[0]);
  }
  const siginfo_t info = child.Wait();
  if (info.si_code == CLD_EXITED) {
    result.exit_code = info.si_status;
  } else {
    result.term_signal = info.si_status;
  }
  return result;
}

}  // namespace tp
