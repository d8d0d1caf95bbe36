#include "api/series_name.h"

#include <vector>

#include "api/errors.h"
#include "base/near_miss.h"
#include "base/printable.h"

namespace tp::api {

absl::Status CheckSeriesName(const core::Registry& registry, const std::string& name) {
  if (name.empty() || registry.series.contains(name)) return absl::OkStatus();
  std::vector<std::string> names;
  names.reserve(registry.series.size());
  for (const auto& [known, series] : registry.series) names.push_back(known);
  const auto meant = NearMiss(name, names);
  return WithField(NotFound("there is no series {}{}", Quoted(name),
                            meant ? fmt::format("; did you mean {}?", *meant) : ": tp series lists them"),
                   "series");
}

}  // namespace tp::api
