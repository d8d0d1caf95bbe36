// Changes of a run for tests of notifications.
#pragma once

#include <string>

#include "core/run.h"
#include "store/store.h"

namespace tp::notify {

inline store::WordChange Change(int64_t revision, core::RunWord to, std::vector<core::Notice> notify) {
  store::WordChange change;
  change.row.revision = revision;
  change.row.at = absl::FromUnixMillis(1'767'225'600'123);
  change.row.run = 42;
  change.row.step = "main";
  change.row.from = core::RunWord::kRunning;
  change.row.to = to;
  change.row.retry_count = 1;
  change.row.reason = "rank 0 ended with exit 3";
  change.run.n = 42;
  change.run.slug = "train";
  change.run.owner = "ana";
  change.run.project = "vision";
  change.run.notify = std::move(notify);
  return change;
}

}  // namespace tp::notify
