// The sweep both ways (DESIGN 5.7): what engines hold against what this deployment knows to be live, by exact key,
// deployment and epoch. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/ids.h"
#include "tp/attempt.h"

namespace tp::core {

// An object of an engine, as its inventory names it.
struct SeenObject {
  std::string backend;
  std::string key;
  std::optional<AttemptTarget> target;  // what orders to it need, where it is known
};

// A live attempt.
struct LiveObject {
  std::string backend;
  std::string key;
  std::string run_id;
  bool runs = false;  // so that the engine has to have its object
  bool operator==(const LiveObject&) const = default;
};

enum class FindingKind : uint8_t {
  kOrphan,   // of this deployment and epoch and of no live attempt: it is ended
  kForeign,  // of another deployment or epoch, or without what orders to it need: only listed
  kMissing,  // a running attempt of which the engine has nothing: it is followed to its end as ever
};

struct Finding {
  FindingKind kind = FindingKind::kForeign;
  std::string backend;
  std::string key;
  std::string sentence;
  std::optional<AttemptTarget> target;  // of an orphan
};

// `before` and `after`: live attempts, read before and after the inventory was taken. An attempt that began or
// ended meanwhile is no finding. Sorted by backend and key.
std::vector<Finding> Reconcile(const Deployment& deployment, const std::vector<SeenObject>& seen,
                               const std::vector<LiveObject>& before, const std::vector<LiveObject>& after);

}  // namespace tp::core
