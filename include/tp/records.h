// The records that a rank leaves in its attempt directory, as values. The file format is
// docs/launch-contract.md; reading them is src/launch, judging them is src/core.
// Stamps ending in _boot_us are CLOCK_BOOTTIME of the host and compare only within one boot_id;
// _unix_us is the host's real time. Plain values: copy freely, no thread rules.
#pragma once

#include <cstdint>
#include <string>

namespace tp {

struct HostStamp {
  std::string host;
  std::string boot_id;
  int64_t boot_us = 0;
  int64_t unix_us = 0;
  bool operator==(const HostStamp&) const = default;
};

struct StartRecord {
  std::string nonce;  // of the launch call that owns the rank
  HostStamp at;
  int64_t precision_us = 0;  // 0: exact; the sh stand-in has 10 ms
  bool operator==(const StartRecord&) const = default;
};

enum class ExitKind { kExited, kKilled, kNotStarted };

// Who sent the first signal that counts (TERM, or a warning that tpd announced).
enum class SignalledBy { kNobody, kTpd, kOther };

// What the end of a failed rank's log says in words that are known. The most telling one first: what comes after
// kNone is mostly the echo of another rank's end.
enum class LogMark {
  kCudaOutOfMemory,
  kHostOutOfMemory,
  kSharedMemory,
  kDiskFull,
  kModuleMissing,
  kCudaError,
  kPortInUse,
  kNone,
  kNcclTimeout,
  kNcclError,
};

struct EndRecord {
  std::string nonce;
  HostStamp at;
  ExitKind exit = ExitKind::kExited;
  int code = 0;             // exit status when kExited
  int term_signal = 0;      // signal number when kKilled
  std::string start_error;  // errno name when kNotStarted
  SignalledBy signalled_by = SignalledBy::kNobody;
  bool ambiguous = false;  // from the sh stand-in: a code above 128 may have been a signal
  int64_t oom_kills = 0;
  int64_t log_bytes = 0;
  LogMark log_mark = LogMark::kNone;  // not of the record: read from the log beside it
  bool operator==(const EndRecord&) const = default;

  bool signalled() const { return signalled_by != SignalledBy::kNobody; }
  bool clean() const { return exit == ExitKind::kExited && code == 0; }
};

struct Heartbeat {
  int64_t count = 0;
  HostStamp at;
  bool operator==(const Heartbeat&) const = default;
};

}  // namespace tp
