#include "plan/window_book.h"

#include <utility>

namespace tp::plan {

std::string WindowBook::NameOf(const core::Registry& registry, const core::ResolvedShape& shape) {
  std::string name;
  for (const core::PoolShape& pool : shape.pools) {
    const auto series = registry.series.find(pool.series);
    if (series == registry.series.end() || series->second.windows.empty()) continue;
    name += pool.series + "/" + pool.profile + "\n";
  }
  return name;
}

void WindowBook::Reset(core::HeldOpen held_open) {
  held_open_ = std::move(held_open);
  pages_.clear();
}

const WindowBook::Page& WindowBook::PageOf(const core::Registry& registry, const core::ResolvedShape& shape,
                                           absl::Time now) {
  const std::string name = NameOf(registry, shape);
  const auto found = pages_.find(name);
  if (found != pages_.end() && found->second.calendar.Serves(now)) return found->second;
  Page page;
  page.schedule = core::ScheduleOf(registry, shape, held_open_);
  page.calendar = core::CalendarOf(page.schedule, now);
  return pages_.insert_or_assign(name, std::move(page)).first->second;
}

const core::Schedule& WindowBook::ScheduleOf(const core::Registry& registry, const core::ResolvedShape& shape,
                                             absl::Time now) {
  return PageOf(registry, shape, now).schedule;
}

core::WindowStanding WindowBook::StandingOf(const core::Registry& registry, const core::ResolvedShape& shape,
                                            absl::Time now) {
  return core::StandingIn(PageOf(registry, shape, now).calendar, now);
}

}  // namespace tp::plan
