// How the windows of each schedule stand, worked out once a day for all that ask. Pure; not thread-safe.
#pragma once

#include <map>
#include <string>

#include "absl/time/time.h"
#include "core/registry.h"
#include "core/step.h"
#include "core/windows.h"

namespace tp::plan {

class WindowBook {
 public:
  // The name of the schedule that counts for the shape; empty: it has none.
  static std::string NameOf(const core::Registry& registry, const core::ResolvedShape& shape);

  // Forgets what it worked out: another registry, or an admin holds a window open.
  void Reset(core::HeldOpen held_open);
  const core::HeldOpen& held_open() const { return held_open_; }

  const core::Schedule& ScheduleOf(const core::Registry& registry, const core::ResolvedShape& shape, absl::Time now);
  core::WindowStanding StandingOf(const core::Registry& registry, const core::ResolvedShape& shape, absl::Time now);

 private:
  struct Page {
    core::Schedule schedule;
    core::Calendar calendar;
  };

  const Page& PageOf(const core::Registry& registry, const core::ResolvedShape& shape, absl::Time now);

  core::HeldOpen held_open_;
  std::map<std::string, Page> pages_;
};

}  // namespace tp::plan
