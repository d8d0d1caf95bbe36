// Log chunks to a file descriptor: each byte of a rank's log once, in order, unchanged. With several
// ranks, line by line behind `<pool>-<rank> | `; with several steps, each below a title. Blocking I/O.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "tp/v1/log.pb.h"

namespace tp::cli {

class LogPrinter {
 public:
  LogPrinter(int fd, bool prefixed) : fd_(fd), prefixed_(prefixed) {}

  // Of a stream that was opened anew, and repeats what was printed, only the rest is.
  absl::Status Accept(const v1::ReadLogResponse& chunk);
  // Lines whose end never came.
  absl::Status Finish();
  bool started() const { return !printed_ends_.empty(); }

 private:
  using Place = std::pair<int32_t, int32_t>;  // step and attempt: their logs come one after another

  std::string_view TakeNew(const Place& place, const v1::ReadLogResponse& chunk);
  absl::Status Enter(const Place& place, const v1::ReadLogResponse& chunk);
  absl::Status Print(std::string_view data);
  absl::Status PrintLines(const std::string& rank, std::string_view data);

  const int fd_;
  const bool prefixed_;
  std::map<std::pair<Place, std::string>, int64_t> printed_ends_;  // by place and rank
  Place place_;                                                    // whose lines partial_ holds
  std::map<std::string, std::string> partial_;                     // by rank
  bool in_line_ = false;                                           // what was printed last did not end its line
};

}  // namespace tp::cli
