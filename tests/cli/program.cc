#include "program.h"

#include <array>
#include <csignal>
#include <cstdlib>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <spawn.h>
#include <sys/wait.h>

namespace tp::cli {
namespace {

struct Channel {
  UniqueFd ours;
  UniqueFd theirs;
};

Channel OpenPipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) std::abort();
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

Channel OpenTerminal(int columns) {
  winsize size{};
  size.ws_col = static_cast<unsigned short>(columns);
  size.ws_row = 50;
  termios raw{};
  ::cfmakeraw(&raw);
  int ours = -1;
  int theirs = -1;
  if (::openpty(&ours, &theirs, nullptr, &raw, &size) != 0) std::abort();
  ::fcntl(ours, F_SETFD, FD_CLOEXEC);
  ::fcntl(theirs, F_SETFD, FD_CLOEXEC);
  return {UniqueFd(ours), UniqueFd(theirs)};
}

std::vector<char*> Pointers(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

// False at the end; a terminal ends in EIO.
bool ReadSome(int fd, std::string& text) {
  std::array<char, 65536> buffer{};
  const ssize_t got = ::read(fd, buffer.data(), buffer.size());
  if (got <= 0) return false;
  text.append(buffer.data(), static_cast<size_t>(got));
  return true;
}

}  // namespace

Program::Program(const std::vector<std::string>& argv, const ProgramOptions& options) {
  Channel out = options.terminal_columns > 0 ? OpenTerminal(options.terminal_columns) : OpenPipe();
  Channel err = options.terminal_columns > 0 ? OpenTerminal(options.terminal_columns) : OpenPipe();
  Channel in;
  if (options.terminal_columns > 0) {
    in = {UniqueFd(::fcntl(err.ours.get(), F_DUPFD_CLOEXEC, 0)),
          UniqueFd(::fcntl(err.theirs.get(), F_DUPFD_CLOEXEC, 0))};
  } else {
    in = OpenPipe();
    std::swap(in.ours, in.theirs);  // the first end of a pipe is the one to read from
  }
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, in.theirs.get(), STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, out.theirs.get(), STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, err.theirs.get(), STDERR_FILENO);
  ::posix_spawn_file_actions_addchdir_np(&actions, options.directory.c_str());

  std::vector<std::string> words = argv;
  std::vector<std::string> variables;
  for (const auto& [name, value] : options.environment) variables.push_back(name + "=" + value);
  const int error = ::posix_spawn(&pid_, words.front().c_str(), &actions, nullptr, Pointers(words).data(),
                                  Pointers(variables).data());
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0) std::abort();
  in_ = std::move(in.ours);
  Type(options.input);
  if (options.terminal_columns == 0) in_ = UniqueFd();
  out_ = std::move(out.ours);
  err_ = std::move(err.ours);
}

Program::~Program() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

void Program::Signal(int signal) const { ::kill(pid_, signal); }

void Program::Type(const std::string& text) const {
  if (!text.empty() && ::write(in_.get(), text.data(), text.size()) < 0) std::abort();
}

void Program::AwaitOut(const std::string& text) {
  while (finished_.out.find(text) == std::string::npos && ReadSome(out_.get(), finished_.out)) {
  }
}

void Program::AwaitErr(const std::string& text) {
  while (finished_.err.find(text) == std::string::npos && ReadSome(err_.get(), finished_.err)) {
  }
}

Finished Program::Wait() {
  Finished finished = std::move(finished_);
  std::array<pollfd, 2> streams = {
      {{.fd = out_.get(), .events = POLLIN, .revents = 0}, {.fd = err_.get(), .events = POLLIN, .revents = 0}}};
  while (streams[0].fd >= 0 || streams[1].fd >= 0) {
    ::poll(streams.data(), streams.size(), -1);
    if (streams[0].revents != 0 && !ReadSome(streams[0].fd, finished.out)) streams[0].fd = -1;
    if (streams[1].revents != 0 && !ReadSome(streams[1].fd, finished.err)) streams[1].fd = -1;
  }
  int status = 0;
  ::waitpid(pid_, &status, 0);
  pid_ = -1;
  if (WIFEXITED(status)) finished.exit_code = WEXITSTATUS(status);
  return finished;
}

}  // namespace tp::cli
