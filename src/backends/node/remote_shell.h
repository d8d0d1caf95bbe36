// Runs small sh programs on other machines. The one seam between this backend and ssh: tests put a scripted shell
// in its place. Implementations are thread-safe; each call blocks until it has an answer or until its deadline.
#pragma once

#include <string>
#include <variant>

#include "absl/time/time.h"
#include "tp/attempt.h"

namespace tp::node {

// The program ran to its end there.
struct RemoteReply {
  int exit_code = 0;
  std::string out;  // what it wrote to stdout
};

enum class TransportKind {
  kTimeout,      // no answer in time, connecting or later
  kRefused,      // nothing listens there
  kUnreachable,  // no way there
  kUnknownName,
  kKeyUnknown,
  kKeyChanged,
  kAuth,   // our key is not accepted
  kLost,   // the connection or half of the answer
  kLocal,  // ssh itself does not work on this machine
  kCancelled,
};

struct TransportFailure {
  TransportKind kind = TransportKind::kLost;
  std::string why;           // completes "node3 <why>": "does not answer: connection timed out"
  bool may_have_run = true;  // false: the program was certainly not begun
};

using RemoteResult = std::variant<RemoteReply, TransportFailure>;

struct RemoteProgram {
  std::string text;  // of sh; carries no secrets
  std::string body;  // its stdin, any bytes
};

class RemoteShell {
 public:
  virtual ~RemoteShell() = default;

  virtual RemoteResult Run(const RankHost& host, const RemoteProgram& program, absl::Time deadline) = 0;

  // From now on every call, also one under way, ends at once with kCancelled.
  virtual void Cancel() = 0;
};

}  // namespace tp::node
