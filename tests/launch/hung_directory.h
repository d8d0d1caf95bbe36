// A directory on storage that hangs: whoever opens it or what lies in it waits in the kernel until it is mended. A
// fanotify mark asks this process for leave, and nobody answers. Needs root. Nothing of the test itself may open
// anything there meanwhile.
#pragma once

#include <fcntl.h>
#include <sys/fanotify.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string>

#include "base/fd.h"

namespace tp::testing {

class HungDirectory {
 public:
  explicit HungDirectory(const std::string& path) : group_(fanotify_init(FAN_CLASS_CONTENT | FAN_CLOEXEC, O_RDONLY)) {
    Check(group_.get(), "fanotify_init");
    Check(fanotify_mark(group_.get(), FAN_MARK_ADD, FAN_OPEN_PERM | FAN_ONDIR | FAN_EVENT_ON_CHILD, AT_FDCWD,
                        path.c_str()),
          "fanotify_mark");
  }
  // All who wait go on: the kernel gives leave where nobody listens any more.
  void Mend() { group_.reset(); }

 private:
  static void Check(int result, const char* what) {
    if (result < 0) throw std::runtime_error(std::string(what) + ": " + std::strerror(errno));
  }

  UniqueFd group_;
};

}  // namespace tp::testing
