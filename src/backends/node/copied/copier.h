// Copies trees of files between tpd's machine and another one. The seam between this backend and rsync, beside
// RemoteShell: tests put one of memory in its place. Implementations are thread-safe; a call blocks until it is done.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "tp/attempt.h"

namespace tp::node {

enum class CopyDirection { kToHost, kFromHost };

// Afterwards `target` holds what `source` holds: contents, modes, times, symbolic links as links, holes. Owners,
// devices and sockets are not copied. A copy that was broken off goes on where it was.
struct CopyOrder {
  RankHost host;
  CopyDirection direction = CopyDirection::kToHost;
  std::string source;  // a directory; what is in it is copied
  std::string target;  // a directory that exists
  // rsync's filter rules, in order: `+ /work/***`, `- *`.
  std::vector<std::string> filters = {};
  // Trees on tpd's machine; what is the same there is left out. kFromHost only.
  std::vector<std::string> except_as_in = {};
  bool only_missing = false;   // files that are there stay as they are
  bool delete_others = false;  // what the source has not goes
  std::string mark = {};       // in the environment of the process on the host, as TP_COPY_MARK
  std::string lock = {};       // a file on tpd's machine: one copy at a time has it
};

class Copier {
 public:
  virtual ~Copier() = default;

  // `progress` is told the bytes of this call so far, from its thread. `cancel_fd` readable: the copy ends.
  // Links that come from a host are unusable on tpd's machine until UsableLink has seen their text.
  // CANCELLED; RESOURCE_EXHAUSTED where the disk is full; FAILED_PRECONDITION where something must be set up first;
  // UNAVAILABLE for what may pass. The sentence names the host.
  virtual absl::Status Copy(const CopyOrder& order, const std::function<void(int64_t bytes)>& progress, int cancel_fd,
                            absl::Time deadline) = 0;
};

// The text of a link as it was on the host.
std::string UsableLink(const std::string& text);

}  // namespace tp::node
