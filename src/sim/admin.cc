#include "sim/admin.h"

#include <utility>

#include "sim/units.h"
#include "sim/users.h"

namespace tp::sim {
namespace {

constexpr Span kSeesTo = {5 * kSecond, 3 * kMinute};
constexpr Span kAskAgain = {5 * kSecond, 10 * kSecond};

}  // namespace

Admin::Admin(const Options& options, Timeline& timeline, Rng& rng, Journal& journal, Server& server)
    : options_(options), timeline_(timeline), rng_(rng), journal_(journal), server_(server) {}

void Admin::Start() {
  if (options_.admin.between_edits.high_us == 0) return;
  acting_ = true;
  ActLater();
}

void Admin::Stop() {
  acting_ = false;
  LiftLimits();
  ClearNodes();
}

bool Admin::Content() const {
  return !acting_ && limited_.empty() && server_.up() && server_.loop().planner().capacity().withheld().empty();
}

void Admin::ActLater() {
  timeline_.In(rng_.Draw(options_.admin.between_edits), [this] {
    if (!acting_) return;
    if (server_.up()) Act();
    ActLater();
  });
}

void Admin::Act() {
  if (rng_.Chance(250)) return TouchNode();
  if (!options_.admin.hours.empty() && rng_.Chance(200)) return HoldOpen();
  const std::string user = rng_.Pick(kOwners);
  loop::SetQuota set;
  set.user = user;
  set.clear.all = rng_.Chance(500);
  set.clear.gpus = rng_.Chance(200);
  core::QuotaLimits& limits = set.limits;
  const int64_t cards = int64_t{options_.nodes} * options_.cards_per_node;
  if (rng_.Chance(600)) limits.gpus = rng_.Between(0, cards);
  if (rng_.Chance(300)) limits.jobs = rng_.Between(0, 3);
  if (rng_.Chance(300)) limits.series_gpus["gpu"] = rng_.Between(0, cards);
  limited_.insert(user);
  Post(std::move(set), [] {});
}

void Admin::LiftLimit(const std::string& user) {
  loop::SetQuota set;
  set.user = user;
  set.clear.all = true;
  Post(std::move(set), [this, user] {
    if (!acting_) limited_.erase(user);
  });
}

void Admin::HoldOpen() {
  loop::HoldWindowOpen hold{.series = "gpu", .until = std::nullopt};
  if (rng_.Chance(700)) hold.until = timeline_.wall() + absl::Microseconds(rng_.Draw({kSecond, 30 * kMinute}));
  Post(std::move(hold), [] {});
}

void Admin::LiftLimits() {
  if (limited_.empty()) return;
  if (server_.up()) {
    for (const std::string& user : limited_) LiftLimit(user);
  }
  timeline_.In(rng_.Draw(kAskAgain), [this] { LiftLimits(); });
}

std::vector<core::NodePart> Admin::Parts() const {
  std::vector<core::NodePart> parts;
  for (int node = 0; node < options_.nodes; ++node) {
    const std::string name = fmt::format("gpu-{}", node);
    for (int card = core::NodePart::kWholeNode; card < options_.cards_per_node; ++card) {
      parts.push_back({.node = name, .card = card});
    }
  }
  parts.push_back({.node = "cpu-0"});
  parts.push_back({.node = "cpu-1"});
  return parts;
}

void Admin::TouchNode() {
  const core::NodePart part = rng_.Pick(Parts());
  if (rng_.Chance(500)) return Clear(part);
  Post(loop::MarkNode{.part = part, .kind = core::MarkKind::kDrained, .reason = "of the simulator"}, [] {});
}

void Admin::Clear(const core::NodePart& part) {
  Post(loop::ClearNode{part}, [this, part] { mended_(part); });
}

void Admin::SeeTo(const core::NodePart& part) {
  timeline_.In(rng_.Draw(kSeesTo), [this, part] {
    if (server_.up()) Clear(part);
  });
}

// Again and again: a node may be struck out by what ended late.
void Admin::ClearNodes() {
  if (server_.up() && !server_.loop().planner().capacity().withheld().empty()) {
    for (const core::NodePart& part : Parts()) Clear(part);
  }
  timeline_.In(rng_.Draw(kAskAgain), [this] { ClearNodes(); });
}

void Admin::Post(loop::Action action, std::function<void()> done) {
  loop::Command command{.who = {std::string(kAdmin), store::Role::kAdmin},
                        .request_id = fmt::format("admin-{}-{}", server_.life(), next_request_++),
                        .method = "Edit",
                        .body_sha256 = "",
                        .action = std::move(action)};
  server_.Post(std::move(command), [this, done = std::move(done)](const absl::StatusOr<loop::Answer>& answer) {
    journal_.Note("admin: {}", answer.ok() ? answer->note : std::string(answer.status().message()));
    if (answer.ok()) done();
  });
}

}  // namespace tp::sim
