// To which launch call tpd has handed an attempt whose machines share no storage: the file `handover` in tpd's own
// attempt directory. Machines that share nothing cannot agree on an owner among themselves, so this name decides
// before anything is sent to any of them: the first to link it is the one launch call that ever is, or nobody is.
// Thread-safe: no state of its own.
//
// Errors: those of base/file.h; any of them means that nothing may be concluded.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace tp::node {

// Until when an order to start ranks may still begin anything on a machine: in that boot, at that uptime.
struct OrderLimit {
  std::string node;
  std::string boot_id;
  int64_t latest_uptime_s = 0;
  bool operator==(const OrderLimit&) const = default;
};

struct Handover {
  std::string key;
  std::string nonce;  // empty: to nobody, ever
  int64_t log_max_bytes = 0;
  std::vector<OrderLimit> orders = {};
  bool operator==(const Handover&) const = default;
};

std::string RenderHandover(const Handover& handover);
// Nothing for what is torn.
std::optional<Handover> ParseHandover(std::string_view bytes);

// Nothing: none was made yet.
absl::StatusOr<std::optional<Handover>> ReadHandover(const std::string& attempt_dir);

// Links it durably, up to `storage_root`, and gives what is found under the name then: compare the nonce.
absl::StatusOr<Handover> MakeHandover(const std::string& attempt_dir, const std::string& storage_root,
                                      const Handover& handover);

// Of a call that is known to have started nothing and whose orders cannot arrive any more.
absl::Status TakeHandoverBack(const std::string& attempt_dir, const std::string& nonce);

}  // namespace tp::node
