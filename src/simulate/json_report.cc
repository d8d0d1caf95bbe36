#include <nlohmann/json.hpp>

#include "simulate/report.h"

namespace tp::simulate {
namespace {

using Json = nlohmann::ordered_json;

Json JsonOf(const Spread& spread) {
  return {{"jobs", spread.count},
          {"sum_ms", absl::ToInt64Milliseconds(spread.sum)},
          {"mean_ms", absl::ToInt64Milliseconds(spread.mean)},
          {"median_ms", absl::ToInt64Milliseconds(spread.median)},
          {"p95_ms", absl::ToInt64Milliseconds(spread.p95)},
          {"max_ms", absl::ToInt64Milliseconds(spread.max)}};
}

Json JsonOf(const SeriesUse& use) {
  return {{"cards_or_nodes", use.units}, {"busy_ms", use.busy_ms}, {"share", use.share}};
}

Json JsonOf(const std::map<std::string, int64_t>& counts) {
  Json json = Json::object();
  for (const auto& [name, count] : counts) json[name] = count;
  return json;
}

template <typename T>
Json JsonOf(const std::map<std::string, T>& values) {
  Json json = Json::object();
  for (const auto& [name, value] : values) json[name] = JsonOf(value);
  return json;
}

Json JsonOf(const Figures& figures) {
  Json gates = Json::object();
  for (const auto& [gate, spread] : figures.gates) gates[std::string(core::Name(gate))] = JsonOf(spread);
  return {{"policy", figures.policy},
          {"begins_unix_s", absl::ToUnixSeconds(figures.begins)},
          {"ends_unix_s", absl::ToUnixSeconds(figures.ends)},
          {"submitted", figures.submitted},
          {"refused", JsonOf(figures.refused)},
          {"ended", figures.ended},
          {"over_limit", figures.over_limit},
          {"never_started", figures.never_started},
          {"pauses", figures.pauses},
          {"wait", JsonOf(figures.wait)},
          {"wait_by_user", JsonOf(figures.wait_by_user)},
          {"wait_by_size", JsonOf(figures.wait_by_size)},
          {"gates", std::move(gates)},
          {"series", JsonOf(figures.series)},
          {"gpu_ms_by_user", JsonOf(figures.gpu_ms_by_user)},
          {"events", figures.events},
          {"evaluations", figures.planner.evaluations}};
}

}  // namespace

std::string JsonReport(const Report& report) {
  Json json = {{"timezone", report.zone.name()}, {"notes", report.notes}, {"policies", Json::array()}};
  for (const Figures& figures : report.policies) json["policies"].push_back(JsonOf(figures));
  return json.dump(2) + "\n";
}

}  // namespace tp::simulate
