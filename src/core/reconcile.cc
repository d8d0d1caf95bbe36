#include "core/reconcile.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

namespace tp::core {
namespace {

using Place = std::pair<std::string, std::string>;  // backend, key

std::map<Place, bool> PlacesOf(const std::vector<LiveObject>& live) {
  std::map<Place, bool> runs;
  for (const LiveObject& object : live) runs[{object.backend, object.key}] = object.runs;
  return runs;
}

Finding Foreign(const SeenObject& object, std::string sentence) {
  return {FindingKind::kForeign, object.backend, object.key, std::move(sentence), std::nullopt};
}

Finding Judge(const Deployment& deployment, const SeenObject& object) {
  const std::optional<ParsedKey> key = ParseAttemptKey(object.key);
  if (!key || key->deployment.name != deployment.name) {
    return Foreign(object, fmt::format("not of deployment {}: it is left alone", deployment.name));
  }
  if (key->deployment.epoch != deployment.epoch) {
    return Foreign(object, fmt::format("of epoch {}, and this is epoch {}: end it by hand once nobody needs it",
                                       key->deployment.epoch, deployment.epoch));
  }
  if (!object.target) return Foreign(object, "it has not claimed its attempt yet: ask again");
  return {FindingKind::kOrphan, object.backend, object.key, "no live attempt is its own: it is ended", object.target};
}

}  // namespace

std::vector<Finding> Reconcile(const Deployment& deployment, const std::vector<SeenObject>& seen,
                               const std::vector<LiveObject>& before, const std::vector<LiveObject>& after) {
  const std::map<Place, bool> live_before = PlacesOf(before);
  const std::map<Place, bool> live_after = PlacesOf(after);
  std::set<Place> there;
  std::vector<Finding> findings;
  for (const SeenObject& object : seen) {
    const Place place(object.backend, object.key);
    there.insert(place);
    if (!live_before.contains(place) && !live_after.contains(place)) findings.push_back(Judge(deployment, object));
  }
  for (const LiveObject& object : before) {
    const Place place(object.backend, object.key);
    const auto later = live_after.find(place);
    const bool still_runs = object.runs && later != live_after.end() && later->second;
    if (there.contains(place) || !still_runs) continue;
    findings.push_back({FindingKind::kMissing, object.backend, object.key,
                        fmt::format("{} has nothing of it on {}: it ends, or is launched again, once that is certain",
                                    object.run_id, object.backend),
                        std::nullopt});
  }
  std::sort(findings.begin(), findings.end(),
            [](const Finding& a, const Finding& b) { return std::tie(a.backend, a.key) < std::tie(b.backend, b.key); });
  return findings;
}

}  // namespace tp::core
