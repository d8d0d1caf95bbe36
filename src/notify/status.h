// How a receiver fares, for admins. Values only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/time/time.h"

namespace tp::notify {

struct ReceiverStatus {
  std::string name;
  bool configured = false;  // tpd.yaml has it
  int64_t waiting = 0;
  int64_t delivered = 0;
  int64_t given_up = 0;
  std::string last_error = {};  // no secret, no url
  std::optional<absl::Time> last_failed_at = std::nullopt;
  bool operator==(const ReceiverStatus&) const = default;
};

}  // namespace tp::notify
