#include "cli/write_all.h"

#include <cerrno>
#include <cstring>

#include <poll.h>
#include <unistd.h>

#include "base/status.h"

namespace tp::cli {

absl::Status WriteAll(int fd, std::string_view data, std::string_view what) {
  while (!data.empty()) {
    const ssize_t written = ::write(fd, data.data(), data.size());
    if (written >= 0) {
      data.remove_prefix(static_cast<size_t>(written));
    } else if (errno == EAGAIN) {
      pollfd ready{.fd = fd, .events = POLLOUT, .revents = 0};
      ::poll(&ready, 1, -1);
    } else if (errno != EINTR) {
      return InvalidArgument("cannot write to {}: {}", what, std::strerror(errno));
    }
  }
  return absl::OkStatus();
}

}  // namespace tp::cli
