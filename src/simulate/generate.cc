#include "simulate/generate.h"

#include "absl/time/civil_time.h"
#include "base/random.h"

namespace tp::simulate {
namespace {

constexpr int64_t kMinutesPerDay = 24 * 60;
constexpr int64_t kMorningMinute = 8 * 60;
constexpr int64_t kEveningMinute = 20 * 60;

template <typename T>
const T& Draw(const Weighted<T>& from, Random& random) {
  int64_t total = 0;
  for (const auto& [value, weight] : from) total += weight;
  int64_t left = random.Between(1, total);
  size_t chosen = 0;
  while (left > from[chosen].second) left -= from[chosen++].second;
  return from[chosen].first;
}

absl::Duration DrawTime(const Recipe& recipe, Random& random, absl::Time begins, absl::TimeZone zone) {
  const int64_t day = random.Between(0, std::max<int64_t>(absl::ToInt64Hours(recipe.over) / 24 - 1, 0));
  const bool daytime = random.Chance(recipe.daytime_percent * 10);
  const int64_t minute =
      daytime ? random.Between(kMorningMinute, kEveningMinute - 1) : random.Between(0, kMinutesPerDay - 1);
  const int64_t second = random.Between(0, 59);
  const absl::CivilSecond at(absl::ToCivilDay(begins, zone) + day);
  return std::max(absl::ZeroDuration(), absl::FromCivil(at + minute * 60 + second, zone) - begins);
}

}  // namespace

Workload Generate(const Recipe& recipe, uint64_t seed, absl::Time begins, absl::TimeZone zone) {
  Random random(seed);
  Workload workload;
  for (int i = 0; i < recipe.jobs; ++i) {
    Submission& job = workload.jobs.emplace_back();
    job.at = DrawTime(recipe, random, begins, zone);
    job.user = Draw(recipe.users, random);
    job.profile = Draw(recipe.shapes, random);
    job.priority = Draw(recipe.priorities, random);
    const int64_t runs_s =
        random.AnyMagnitude(absl::ToInt64Seconds(recipe.shortest), absl::ToInt64Seconds(recipe.longest));
    job.runs = absl::Seconds(runs_s);
    if (random.Chance(recipe.limited_percent * 10)) job.time_limit = absl::Seconds(random.Between(runs_s, 3 * runs_s));
  }
  return workload;
}

}  // namespace tp::simulate
