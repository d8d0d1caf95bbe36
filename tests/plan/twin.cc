#include "twin.h"

#include <algorithm>
#include <cmath>

namespace tp::plan {
namespace {

using Card = std::pair<std::string, int>;

constexpr absl::Duration kAging = absl::Hours(6);
constexpr int kAgingCap = 20;

int Effective(const TwinJob& job, absl::Time now) {
  const auto aged = static_cast<int>(absl::FDivDuration(now - job.submitted, kAging));
  return job.priority + std::min({aged, kAgingCap, 100 - job.priority});
}

int Gpus(const TwinJob& job, const std::string& series) {
  int gpus = 0;
  for (const TwinPool& pool : job.pools) {
    if (series.empty() || pool.series == series) gpus += pool.nodes * pool.gpus;
  }
  return gpus;
}

// What the owner's running jobs come to since `from`.
int64_t RunningMs(const TwinWorld& world, const std::string& owner, absl::Time from) {
  int64_t gpu_ms = 0;
  for (const auto& [ref, job] : world.jobs) {
    if (job.owner != owner || !job.live() || !job.metered_from) continue;
    const absl::Duration ran = world.metered_to - std::max(from, *job.metered_from);
    if (ran > absl::ZeroDuration()) gpu_ms += absl::ToInt64Milliseconds(ran) * Gpus(job, "");
  }
  return gpu_ms;
}

// Half of it counts after each week.
double Share(const TwinWorld& world, const std::string& owner) {
  if (!world.fair_share) return 0;
  double gpu_ms = 0;
  for (const TwinUse& use : world.used) {
    if (use.owner != owner) continue;
    gpu_ms += static_cast<double>(use.gpu_ms) *
              std::exp2(-absl::FDivDuration(world.metered_to - use.ended, absl::Hours(7 * 24)));
  }
  return std::max(gpu_ms, 0.0) + static_cast<double>(RunningMs(world, owner, absl::InfinitePast()));
}

bool Before(const TwinWorld& world, const TwinJob& a, const TwinJob& b, absl::Time now) {
  if (Effective(a, now) != Effective(b, now)) return Effective(a, now) > Effective(b, now);
  const double share_a = Share(world, a.owner);
  const double share_b = Share(world, b.owner);
  if (share_a != share_b) return share_a < share_b;
  if (a.submitted != b.submitted) return a.submitted < b.submitted;
  return a.ref < b.ref;
}

bool HoursLeft(const TwinWorld& world, const TwinJob& job, int limit, absl::Time now) {
  const absl::CivilMonth month(absl::ToCivilMonth(now, absl::UTCTimeZone()));
  int64_t gpu_ms = RunningMs(world, job.owner, absl::FromCivil(month, absl::UTCTimeZone()));
  for (const TwinUse& use : world.used) {
    if (use.owner == job.owner && use.month == month) gpu_ms += use.gpu_ms;
  }
  return gpu_ms < int64_t{limit} * 3'600'000;
}

bool QuotaOpen(const TwinWorld& world, const TwinJob& job, absl::Time now) {
  const auto found = world.quotas.find(job.owner);
  if (found == world.quotas.end()) return true;
  const TwinQuota& quota = found->second;
  int live = 0;
  int gpus = 0;
  std::map<std::string, int> series;
  for (const auto& [ref, other] : world.jobs) {
    if (other.owner != job.owner || !other.live()) continue;
    ++live;
    gpus += Gpus(other, "");
    for (const auto& [name, limit] : quota.series) series[name] += Gpus(other, name);
  }
  if (quota.jobs && live + 1 > *quota.jobs) return false;
  if (Gpus(job, "") > 0 && quota.gpu_hours && !HoursLeft(world, job, *quota.gpu_hours, now)) return false;
  if (Gpus(job, "") > 0 && quota.gpus && gpus + Gpus(job, "") > *quota.gpus) return false;
  return std::all_of(quota.series.begin(), quota.series.end(), [&](const auto& limit) {
    return Gpus(job, limit.first) == 0 || series[limit.first] + Gpus(job, limit.first) <= limit.second;
  });
}

// Minute by minute, as the window's sentence says: at least the limit where some day's opening is as long,
// else half an hour.
bool WindowOpen(const TwinWorld& world, const TwinJob& job, absl::Time now) {
  const bool windowed = std::any_of(job.pools.begin(), job.pools.end(),
                                    [&](const TwinPool& pool) { return pool.series == world.windowed_series; });
  if (!windowed) return true;
  const auto open = [&](absl::Time at) {
    const int hour = absl::UTCTimeZone().At(at).cs.hour();
    return (8 <= hour && hour < 20) || (world.held_open_until && at < *world.held_open_until);
  };
  if (!open(now)) return false;
  const auto closing = [&](absl::Time from) {
    absl::Time at = absl::FromUnixSeconds(absl::ToUnixSeconds(from) / 60 * 60) + absl::Minutes(1);
    while (open(at)) at += absl::Minutes(1);
    while (!open(at - absl::Seconds(1))) at -= absl::Seconds(1);  // a hold may end within a minute
    return at;
  };
  const absl::Duration left = closing(now) - now;
  const bool fits = job.has_limit && job.limit <= std::max(left, absl::Hours(12));
  return left >= (fits ? job.limit : absl::Minutes(30));
}

std::set<Card> HeldCards(const TwinWorld& world) {
  std::set<Card> held;
  for (const auto& [ref, job] : world.jobs) held.insert(job.cards.begin(), job.cards.end());
  return held;
}

// The cards of the node that a rank of the pool would get; empty: it does not fit there.
std::vector<Card> OnNode(const TwinWorld& world, const TwinPool& pool, const std::string& node,
                         const std::set<Card>& taken) {
  std::vector<Card> cards;
  if (pool.gpus == 0 && !taken.contains({node, -1})) cards.emplace_back(node, -1);
  for (int card = 0; card < world.node_cards.at(node); ++card) {
    if (static_cast<int>(cards.size()) < pool.gpus && !taken.contains({node, card})) cards.emplace_back(node, card);
  }
  if (static_cast<int>(cards.size()) < std::max(pool.gpus, 1)) cards.clear();
  return cards;
}

// Tries all ways in order, pool by pool and node by node: the first is the one. A node serves one rank.
class Placing {
 public:
  Placing(const TwinWorld& world, const TwinJob& job, const std::set<Card>& taken, bool without_avoided)
      : world_(world), job_(job), taken_(taken) {
    for (const TwinPool& pool : job.pools) {
      std::vector<std::string> nodes = world.series_nodes.at(pool.series);
      const auto last =
          std::stable_partition(nodes.begin(), nodes.end(), [&](const std::string& node) { return node != job.avoid; });
      if (without_avoided) nodes.erase(last, nodes.end());
      nodes_.push_back(std::move(nodes));
    }
  }

  std::vector<Card> Find() { return Try(0, 0, 0) ? cards_ : std::vector<Card>(); }

 private:
  bool Try(size_t pool, int placed, size_t from) {
    if (pool == job_.pools.size()) return true;
    if (placed == job_.pools[pool].nodes) return Try(pool + 1, 0, 0);
    for (size_t i = from; i < nodes_[pool].size(); ++i) {
      const std::string& node = nodes_[pool][i];
      const std::vector<Card> on_node = OnNode(world_, job_.pools[pool], node, taken_);
      if (on_node.empty() || !used_.insert(node).second) continue;
      cards_.insert(cards_.end(), on_node.begin(), on_node.end());
      if (Try(pool, placed + 1, i + 1)) return true;
      cards_.resize(cards_.size() - on_node.size());
      used_.erase(node);
    }
    return false;
  }

  const TwinWorld& world_;
  const TwinJob& job_;
  const std::set<Card>& taken_;
  std::vector<std::vector<std::string>> nodes_;  // by pool
  std::set<std::string> used_;
  std::vector<Card> cards_;
};

// The cards that the job would get where `taken` are not to be had; empty: there is no room.
std::vector<Card> Place(const TwinWorld& world, const TwinJob& job, const std::set<Card>& taken) {
  std::vector<Card> cards = Placing(world, job, taken, true).Find();
  return cards.empty() ? Placing(world, job, taken, false).Find() : cards;
}

struct TwinReservation {
  std::set<std::string> series;
  absl::Time start;
  std::vector<Card> cards;
};

// Lets what is live end one after the other, those of one moment together, until there is room.
std::optional<TwinReservation> Reserve(const TwinWorld& world, const TwinJob& job,
                                       const std::vector<TwinReservation>& others, absl::Time now) {
  std::map<absl::Time, std::vector<Card>> endings;
  for (const auto& [ref, live] : world.jobs) {
    if (!live.live()) continue;
    std::vector<Card>& at = endings[std::max(live.ends, now)];
    at.insert(at.end(), live.cards.begin(), live.cards.end());
  }
  std::set<Card> taken = HeldCards(world);
  for (const auto& [at, cards] : endings) {
    for (const Card& card : cards) taken.erase(card);
    std::set<Card> not_to_be_had = taken;
    for (const TwinReservation& other : others) not_to_be_had.insert(other.cards.begin(), other.cards.end());
    std::vector<Card> chosen = Place(world, job, not_to_be_had);
    if (chosen.empty()) continue;
    TwinReservation reservation{.series = {}, .start = at, .cards = std::move(chosen)};
    for (const TwinPool& pool : job.pools) reservation.series.insert(pool.series);
    return reservation;
  }
  return std::nullopt;
}

// One look at everything, in order.
std::vector<TwinStart> OneLook(TwinWorld& world, absl::Time now) {
  std::vector<TwinJob*> order;
  for (auto& [ref, job] : world.jobs) {
    if (job.queued && !job.live() && !job.held && (!job.not_before || *job.not_before <= now)) order.push_back(&job);
  }
  std::sort(order.begin(), order.end(), [&](const TwinJob* a, const TwinJob* b) { return Before(world, *a, *b, now); });
  std::vector<TwinReservation> reservations;
  std::vector<TwinStart> starts;
  for (TwinJob* job : order) {
    if (!WindowOpen(world, *job, now) || !QuotaOpen(world, *job, now)) continue;
    const std::set<Card> held = HeldCards(world);
    if (Place(world, *job, held).empty()) {
      const bool reserved = std::any_of(reservations.begin(), reservations.end(), [&](const TwinReservation& one) {
        return std::any_of(job->pools.begin(), job->pools.end(),
                           [&](const TwinPool& pool) { return one.series.contains(pool.series); });
      });
      if (reserved) continue;
      if (auto reservation = Reserve(world, *job, reservations, now)) reservations.push_back(*std::move(reservation));
      continue;
    }
    std::set<Card> taken = held;
    for (const TwinReservation& one : reservations) {
      if (now + job->limit > one.start) taken.insert(one.cards.begin(), one.cards.end());
    }
    std::vector<Card> cards = Place(world, *job, taken);
    if (cards.empty()) continue;
    job->cards = cards;
    job->ends = now + job->limit;
    starts.push_back({job->ref, std::move(cards)});
  }
  return starts;
}

}  // namespace

std::vector<TwinStart> TwinStarts(TwinWorld& world, absl::Time now) {
  std::vector<TwinStart> all;
  while (true) {
    const std::vector<TwinStart> some = OneLook(world, now);
    if (some.empty()) return all;
    all.insert(all.end(), some.begin(), some.end());
  }
}

bool TwinOverQuota(const TwinWorld& world, core::StepRef ref) {
  const TwinJob& started = world.jobs.at(ref);
  const std::string& owner = started.owner;
  const auto found = world.quotas.find(owner);
  if (found == world.quotas.end()) return false;
  int live = 0;
  int gpus = 0;
  for (const auto& [other, job] : world.jobs) {
    if (job.owner != owner || !job.live()) continue;
    ++live;
    gpus += Gpus(job, "");
  }
  return (Gpus(started, "") > 0 && found->second.gpus && gpus > *found->second.gpus) ||
         (found->second.jobs && live > *found->second.jobs);
}

}  // namespace tp::plan
