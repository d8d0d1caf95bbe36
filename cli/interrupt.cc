#include "cli/interrupt.h"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>

#include <fcntl.h>

namespace tp::cli {
namespace {

constexpr char kSignal = 's';
constexpr char kQuit = 'q';

// Where the handler writes; -1 outside of an Interrupt's life.
std::atomic<int> g_signal_fd{-1};

void OnSignal(int) {
  const int saved_errno = errno;
  const int fd = g_signal_fd.load();
  if (fd >= 0 && ::write(fd, &kSignal, 1) < 0) errno = saved_errno;
  errno = saved_errno;
}

void SetHandler(void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  ::sigaction(SIGINT, &action, nullptr);
}

}  // namespace

Interrupt::Interrupt() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) std::abort();  // no descriptor left for a process that holds a handful
  read_end_ = UniqueFd(ends[0]);
  write_end_ = UniqueFd(ends[1]);
  thread_ = std::thread([this] { AwaitSignal(); });
  g_signal_fd.store(write_end_.get());
  SetHandler(OnSignal);
}

Interrupt::~Interrupt() {
  SetHandler(SIG_DFL);
  g_signal_fd.store(-1);
  while (::write(write_end_.get(), &kQuit, 1) < 0 && errno == EINTR) {
  }
  thread_.join();
}

void Interrupt::AwaitSignal() {
  char what = 0;
  while (what != kQuit) {
    const ssize_t got = ::read(read_end_.get(), &what, 1);
    if (got < 0 && errno == EINTR) continue;
    if (got != 1) return;
    if (what != kSignal) continue;
    const std::scoped_lock lock(mutex_);
    interrupted_ = true;
    if (watched_ != nullptr) watched_->TryCancel();
    signalled_.notify_all();
  }
}

bool Interrupt::interrupted() const {
  const std::scoped_lock lock(mutex_);
  return interrupted_;
}

void Interrupt::Watch(grpc::ClientContext* context) {
  const std::scoped_lock lock(mutex_);
  watched_ = context;
  if (interrupted_) context->TryCancel();
}

void Interrupt::Forget() {
  const std::scoped_lock lock(mutex_);
  watched_ = nullptr;
}

bool Interrupt::Sleep(absl::Duration duration) {
  std::unique_lock lock(mutex_);
  return !signalled_.wait_for(lock, absl::ToChronoNanoseconds(duration), [this] { return interrupted_; });
}

}  // namespace tp::cli
