// Whether a host is worth asking. After a failure nobody asks until a probe has succeeded; probes come ever more
// seldom. Pure: time and jitter come in as values. Not thread-safe.
#pragma once

#include <string>

#include "absl/time/time.h"

namespace tp::node {

class Circuit {
 public:
  bool closed() const { return failures_ == 0; }
  // Since when it is as it is; the past where it was never asked.
  absl::Time since() const { return since_; }
  const std::string& why() const { return why_; }
  // From the last failure to the next probe.
  absl::Duration pause() const { return pause_; }

  void Succeeded(absl::Time now);
  // `jitter`: from 0 to 1.
  void Failed(absl::Time now, const std::string& why, double jitter);

  // "node3 does not answer for 3m: connection timed out".
  std::string Sentence(const std::string& node, absl::Time now) const;

 private:
  int failures_ = 0;  // in a row
  absl::Time since_ = absl::InfinitePast();
  std::string why_;  // completes "node3 <why>"
  absl::Duration pause_;
};

}  // namespace tp::node
