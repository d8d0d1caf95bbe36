// Bugs that can be planted around the product, which itself stays as it is: the simulator proves its
// strength by catching every one of them.
#pragma once

#include <functional>

#include "core/step.h"
#include "core/table.h"

namespace tp::sim {

struct Defects {
  const core::Table* table = &core::ProductTable();
  std::function<void(core::Policy&)> change_policy;  // the loop's; the rules are checked by the true one
  bool effects_before_commit = false;
  bool replies_at_once = false;   // before anything is committed
  bool commits_lost = false;      // a crash takes the newest acknowledged commit with it
  bool outbox_forgotten = false;  // at a restart nothing that is owed is sent again
  bool launch_repeated = false;   // at a restart a launch that is owed is sent a second time
  bool claims_ignored = false;    // by ranks
  bool unknown_is_absent = false;
  bool clock_set_ignored = false;
  bool quotas_forgotten = false;         // at a restart no rule is in force
  bool marks_forgotten = false;          // at a restart no node is out of service
  bool requests_forgotten = false;       // the same request id is another request
  bool corrections_forgotten = false;    // at a restart nobody looks for records any more
  bool corrections_not_durable = false;  // what is still to be corrected is in memory alone
  bool corrections_kept = false;         // what was corrected stays owed
};

}  // namespace tp::sim
