#include "simulate/figures.h"

#include <algorithm>

namespace tp::simulate {
namespace {

using Waits = std::vector<absl::Duration>;

std::map<std::string, Spread> Spreads(std::map<std::string, Waits> waits) {
  std::map<std::string, Spread> spreads;
  for (auto& [name, durations] : waits) spreads[name] = SpreadOf(std::move(durations));
  return spreads;
}

void AddWaits(const Workload& workload, const Outcome& outcome, Figures& figures) {
  Waits all;
  std::map<std::string, Waits> by_user;
  std::map<std::string, Waits> by_size;
  for (size_t i = 0; i < outcome.jobs.size(); ++i) {
    const JobOutcome& job = outcome.jobs[i];
    if (!job.started) continue;
    const absl::Duration wait = *job.started - (outcome.begins + workload.jobs[i].at);
    all.push_back(wait);
    by_user[workload.jobs[i].user].push_back(wait);
    by_size[job.size].push_back(wait);
  }
  figures.wait = SpreadOf(std::move(all));
  figures.wait_by_user = Spreads(std::move(by_user));
  figures.wait_by_size = Spreads(std::move(by_size));
}

void AddGates(const Outcome& outcome, Figures& figures) {
  std::map<core::GateKind, Waits> waits;
  for (const JobOutcome& job : outcome.jobs) {
    for (size_t gate = 0; gate < job.waited.size(); ++gate) {
      if (job.waited[gate] <= absl::ZeroDuration()) continue;
      waits[static_cast<core::GateKind>(gate)].push_back(job.waited[gate]);
    }
  }
  for (auto& [gate, durations] : waits) figures.gates[gate] = SpreadOf(std::move(durations));
}

void AddSeries(const PolicyCase& rules, const Outcome& outcome, Figures& figures) {
  const double span_ms = static_cast<double>(absl::ToInt64Milliseconds(outcome.ends - outcome.begins));
  for (const auto& [name, series] : rules.registry->series) {
    if (series.nodes.empty()) continue;
    SeriesUse& use = figures.series[name];
    use.units = static_cast<int64_t>(series.nodes.size()) * std::max(series.gpus_per_node, 1);
    if (const auto busy = outcome.busy_ms.find(name); busy != outcome.busy_ms.end()) use.busy_ms = busy->second;
    const double whole = static_cast<double>(use.units) * span_ms;
    if (whole > 0) use.share = static_cast<double>(use.busy_ms) / whole;
  }
}

void AddCounts(const Workload& workload, const Outcome& outcome, Figures& figures) {
  for (size_t i = 0; i < outcome.jobs.size(); ++i) {
    const JobOutcome& job = outcome.jobs[i];
    ++figures.submitted;
    if (!job.refused.empty()) {
      ++figures.refused[job.refused];
      continue;
    }
    figures.gpu_ms_by_user[workload.jobs[i].user] += job.gpu_ms;
    figures.ended += job.ended ? 1 : 0;
    figures.over_limit += job.over_limit ? 1 : 0;
    figures.never_started += job.started ? 0 : 1;
    figures.pauses += job.pauses;
  }
}

}  // namespace

Spread SpreadOf(std::vector<absl::Duration> durations) {
  Spread spread;
  if (durations.empty()) return spread;
  std::sort(durations.begin(), durations.end());
  const size_t count = durations.size();
  const auto rank = [&](size_t percent) { return durations[(count * percent + 99) / 100 - 1]; };
  spread.count = static_cast<int64_t>(count);
  for (const absl::Duration duration : durations) spread.sum += duration;
  spread.mean = spread.sum / spread.count;
  spread.median = rank(50);
  spread.p95 = rank(95);
  spread.max = durations.back();
  return spread;
}

int64_t Figures::refused_count() const {
  int64_t count = 0;
  for (const auto& [reason, jobs] : refused) count += jobs;
  return count;
}

Figures FiguresOf(const Workload& workload, const PolicyCase& rules, const Outcome& outcome) {
  Figures figures;
  figures.policy = rules.name;
  figures.begins = outcome.begins;
  figures.ends = outcome.ends;
  figures.events = outcome.events;
  figures.planner = outcome.planner;
  AddCounts(workload, outcome, figures);
  AddWaits(workload, outcome, figures);
  AddGates(outcome, figures);
  AddSeries(rules, outcome, figures);
  return figures;
}

}  // namespace tp::simulate
