// Files of a rank that grow on another machine, continued in tpd's own attempt directory by the pieces that come from
// there. Not thread-safe. What does not fit to what is there already is left out: the next look asks again.
//
// Errors: those of base/file.h, of tpd's own storage.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/file.h"

namespace tp::node {

// A log with its segments (docs/launch-contract.md, Log): the same boundaries as on the machine, so that a byte has the
// same place in the stream.
class LogMirror {
 public:
  LogMirror(std::string name, int64_t max_bytes) : name_(std::move(name)), max_bytes_(max_bytes) {}

  // The first byte of the stream that is not here.
  absl::StatusOr<int64_t> End(const Directory& directory);

  // `begin`: where the machine's file begins in the stream; `offset`: of the first of these bytes.
  absl::Status Append(const Directory& directory, int64_t begin, int64_t offset, std::string_view bytes);

 private:
  struct Part {
    int64_t begin = 0;
    int64_t bytes = 0;
  };

  absl::Status Load(const Directory& directory);
  absl::Status BeginAt(const Directory& directory, int64_t begin);
  absl::Status Trim(const Directory& directory);
  std::string NameOf(const Part& part) const;

  const std::string name_;
  const int64_t max_bytes_;
  bool loaded_ = false;
  std::vector<Part> segments_;  // oldest first
  Part current_;
};

// A file that is written as a whole again where the machine has begun it anew.
class TailMirror {
 public:
  TailMirror(std::string name, int64_t max_bytes) : name_(std::move(name)), max_bytes_(max_bytes) {}

  absl::StatusOr<int64_t> End(const Directory& directory);
  absl::Status Append(const Directory& directory, int64_t offset, std::string_view bytes);

 private:
  const std::string name_;
  const int64_t max_bytes_;
  int64_t end_ = -1;
};

}  // namespace tp::node
