// Log chunks to a file descriptor: each byte of a rank's log once, in order, unchanged. With several
// ranks, line by line behind `<pool>-<rank> | `. Blocking I/O.
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

  // What follows is of a new stream, which may repeat what was printed.
  void BeginStream() { ++stream_; }
  absl::Status Accept(const v1::ReadLogResponse& chunk);
  // Lines whose end never came.
  absl::Status Finish();
  bool started() const { return !positions_.empty(); }

 private:
  struct Position {
    int64_t printed_end = 0;
    int stream = 0;          // the last that told of it
    int64_t stream_end = 0;  // how far that one has come
  };

  std::string_view TakeNew(const v1::ReadLogResponse& chunk);
  absl::Status PrintLines(const std::string& rank, std::string_view data);

  const int fd_;
  const bool prefixed_;
  int stream_ = 0;
  std::map<std::pair<std::string, int32_t>, Position> positions_;  // by rank and attempt
  std::map<std::string, std::string> partial_;                     // by rank
};

}  // namespace tp::cli
