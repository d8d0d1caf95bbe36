// The bytes of one rank's log by their position in the whole stream, across rotated segments
// (docs/launch-contract.md, Log). Blocking I/O; used by one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/fd.h"
#include "base/file.h"

namespace tp::api {

struct LogBytes {
  int64_t offset = 0;  // of the first byte; above what was asked where the oldest segments are gone
  std::string data;    // empty: nothing there yet
};

class RankLog {
 public:
  // `directory`: of the attempt. `name`: `0-0.log`.
  RankLog(std::shared_ptr<const Directory> directory, std::string name);

  // Up to `max_bytes` from `offset` on; a file that does not exist yet is an empty one.
  absl::StatusOr<LogBytes> Read(int64_t offset, size_t max_bytes);

  // Where the last `lines` lines begin; 0 lines: the end.
  absl::StatusOr<int64_t> TailOffset(int64_t lines);

 private:
  struct Segment {
    int64_t begin = 0;
    std::string name;
    bool operator==(const Segment&) const = default;
  };
  struct OpenFile {
    UniqueFd fd;
    std::string name;
    int64_t begin = 0;
  };

  absl::StatusOr<std::vector<Segment>> ListSegments() const;
  // Nothing: the file that will hold `offset` does not exist yet.
  absl::StatusOr<std::optional<OpenFile>> Locate(int64_t offset) const;
  absl::StatusOr<std::optional<OpenFile>> LocateOnce(const std::vector<Segment>& segments, int64_t offset) const;
  bool IsComplete(const OpenFile& file) const;
  absl::StatusOr<std::string> ReadFile(const OpenFile& file, int64_t offset, size_t max_bytes) const;
  absl::StatusOr<LogBytes> ReadBlock(int64_t offset, size_t bytes);
  absl::StatusOr<int64_t> End() const;

  const std::shared_ptr<const Directory> directory_;
  const std::string name_;
  std::optional<OpenFile> file_;  // where the last read was
};

}  // namespace tp::api
