#include "backends/node/ssh_failure.h"

#include <array>
#include <string>

#include <fmt/format.h>

#include "absl/time/time.h"
#include "base/printable.h"

namespace tp::node {
namespace {

constexpr int kSshItself = 255;

struct Sign {
  std::string_view text;
  TransportKind kind;
  std::string_view why;
};

// In this order: a changed key also fails its verification.
constexpr std::array kSigns = {
    Sign{"REMOTE HOST IDENTIFICATION HAS CHANGED", TransportKind::kKeyChanged,
         "shows another host key than known_hosts has: if the machine was set up anew, replace its line there"},
    Sign{"Offending ", TransportKind::kKeyChanged,
         "shows another host key than known_hosts has: if the machine was set up anew, replace its line there"},
    Sign{"Host key verification failed", TransportKind::kKeyUnknown,
         "has no line in known_hosts: add its host key (ssh-keyscan), once it is checked"},
    Sign{"Permission denied", TransportKind::kAuth,
         "does not accept tpd's key: add its public half to authorized_keys there"},
    Sign{"Too many authentication failures", TransportKind::kAuth,
         "does not accept tpd's key: add its public half to authorized_keys there"},
    Sign{"Could not resolve hostname", TransportKind::kUnknownName, "has an address that no name service knows"},
    Sign{"Bad configuration option", TransportKind::kLocal, "is not asked: the ssh configuration is faulty"},
    Sign{"Bad owner or permissions", TransportKind::kLocal, "is not asked: the ssh configuration is faulty"},
    Sign{"Can't open user config file", TransportKind::kLocal, "is not asked: the ssh configuration is missing"},
    Sign{"UNPROTECTED PRIVATE KEY FILE", TransportKind::kLocal,
         "is not asked: tpd's key file is readable by others, and ssh does not use it"},
    Sign{"Connection refused", TransportKind::kRefused, "does not answer: nothing listens on its ssh port"},
    Sign{"timed out", TransportKind::kTimeout, "does not answer: connection timed out"},
    Sign{"No route to host", TransportKind::kUnreachable, "does not answer: no route to it"},
    Sign{"Network is unreachable", TransportKind::kUnreachable, "does not answer: its network cannot be reached"},
};

bool IsBeforeTheProgram(TransportKind kind) {
  switch (kind) {
    case TransportKind::kRefused:
    case TransportKind::kUnreachable:
    case TransportKind::kUnknownName:
    case TransportKind::kKeyUnknown:
    case TransportKind::kKeyChanged:
    case TransportKind::kAuth:
    case TransportKind::kLocal:
    case TransportKind::kCancelled:
      return true;
    case TransportKind::kTimeout:  // also of a session that was open
    case TransportKind::kLost:
      return false;
  }
  return false;
}

std::string_view LastLine(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.remove_suffix(1);
  const size_t newline = text.rfind('\n');
  return newline == std::string_view::npos ? text : text.substr(newline + 1);
}

}  // namespace

TransportFailure JudgeSsh(int exit_code, std::string_view err, bool begun) {
  for (const Sign& sign : kSigns) {
    if (exit_code != kSshItself || begun || err.find(sign.text) == std::string_view::npos) continue;
    const bool connecting =
        err.find("connect to host") != std::string_view::npos || err.find("banner exchange") != std::string_view::npos;
    return {sign.kind, std::string(sign.why), !IsBeforeTheProgram(sign.kind) && !connecting};
  }
  const std::string said = err.empty() ? fmt::format("ssh ended with {}", exit_code) : Quoted(LastLine(err));
  if (!begun && exit_code != kSshItself) {
    return {TransportKind::kLost, fmt::format("does not run what it is sent: {}", said), true};
  }
  return {TransportKind::kLost, fmt::format("was lost before its answer was whole: {}", said), true};
}

TransportFailure TimedOut(absl::Duration after) {
  return {TransportKind::kTimeout,
          fmt::format("does not answer: nothing came within {:.0f} s", absl::ToDoubleSeconds(after)), true};
}

}  // namespace tp::node
