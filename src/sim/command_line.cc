#include "sim/command_line.h"

#include <charconv>
#include <optional>

#include <fmt/core.h>

#include "sim/simulation.h"
#include "sim/step_simulation.h"
#include "sim/sweep.h"

namespace tp::sim {
namespace {

constexpr std::string_view kUsage =
    R"(usage: sim --seed N | --seeds A-B  [--events N] [--simulator loop|step] [--coverage N]

Runs tpd's loop and core over a simulated world with faults, in virtual time.

  --seed N      replay one seed, printing everything that happens
  --seeds A-B   run these seeds; the first broken rule is printed with its seed
  --events N    events of the phase with faults, at least (default 500)
  --simulator   loop: the loop over a store, with crashes; step: one step and core
                alone, with schedule windows and six times the events (default: both
                for --seeds, else loop)
  --coverage N  print how often each edge of the state table was taken, and fail
                where one was taken less than N times

Exit code: 0 all rules held, 1 a rule is broken, 2 usage.
)";

struct Arguments {
  std::optional<uint64_t> seed;
  std::optional<std::pair<uint64_t, uint64_t>> seeds;
  int64_t events = 500;
  std::optional<Simulator> simulator;
  std::optional<int64_t> coverage;
};

std::optional<uint64_t> ParseNumber(std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value > INT64_MAX) return std::nullopt;
  return value;
}

std::optional<std::pair<uint64_t, uint64_t>> ParseRange(std::string_view text) {
  const size_t dash = text.find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  const auto first = ParseNumber(text.substr(0, dash));
  const auto last = ParseNumber(text.substr(dash + 1));
  if (!first || !last || *first > *last) return std::nullopt;
  return std::pair(*first, *last);
}

std::optional<Simulator> ParseSimulator(std::string_view text) {
  if (text == "loop") return Simulator::kLoop;
  if (text == "step") return Simulator::kStep;
  return std::nullopt;
}

// Whether the option is known and its value is understood.
bool Take(const std::string& option, const std::string& value, Arguments& arguments) {
  if (option == "--seeds") {
    arguments.seeds = ParseRange(value);
    return arguments.seeds.has_value();
  }
  if (option == "--simulator") {
    arguments.simulator = ParseSimulator(value);
    return arguments.simulator.has_value();
  }
  const auto number = ParseNumber(value);
  if (option == "--seed") {
    arguments.seed = number;
  } else if (option == "--events") {
    arguments.events = static_cast<int64_t>(number.value_or(0));
  } else if (option == "--coverage") {
    arguments.coverage = static_cast<int64_t>(number.value_or(0));
  } else {
    return false;
  }
  return number.has_value();
}

std::optional<Arguments> Parse(const std::vector<std::string>& words) {
  Arguments arguments;
  for (size_t i = 0; i + 1 < words.size(); i += 2) {
    if (!Take(words[i], words[i + 1], arguments)) return std::nullopt;
  }
  const bool one_of_two = arguments.seed.has_value() != arguments.seeds.has_value();
  if (words.size() % 2 != 0 || !one_of_two) return std::nullopt;
  return arguments;
}

int Replay(uint64_t seed, const Arguments& arguments) {
  const SimulationPlan plan{seed, arguments.events, true, {}};
  const bool step = arguments.simulator == Simulator::kStep;
  const SimulationResult result = step ? SimulateStep(plan) : Simulate(plan);
  fmt::print("seed {}: {} events, {} runs, {} restarts, hash {:016x}\n", seed, result.events, result.runs,
             result.restarts, result.hash);
  if (result.broken.empty()) return 0;
  fmt::print("BROKEN: {}\n", result.broken);
  return 1;
}

SweepResult RunSeeds(Simulator simulator, const Arguments& arguments) {
  if (arguments.simulator.value_or(simulator) != simulator) return NothingSwept(core::ProductTable());
  const SweepPlan plan{arguments.seeds->first, arguments.seeds->second, arguments.events, {}, simulator};
  SweepResult swept = Sweep(plan);
  if (swept.failed) {
    fmt::print("{}", DescribeFailure(*swept.failed, plan));
  } else {
    fmt::print("{} simulator: {} seeds, {} events ({} in the shortest), {} runs, {} restarts of tpd: every rule held\n",
               simulator == Simulator::kLoop ? "loop" : "step", swept.seeds, swept.events, swept.fewest_events,
               swept.runs, swept.restarts);
  }
  return swept;
}

int RunBoth(const Arguments& arguments) {
  const SweepResult loop = RunSeeds(Simulator::kLoop, arguments);
  if (loop.failed) return 1;
  const SweepResult step = RunSeeds(Simulator::kStep, arguments);
  if (step.failed) return 1;
  fmt::print("SCENARIOS sim {}\n", loop.seeds + step.seeds);
  if (!arguments.coverage) return 0;
  const CoverageReport report = ReportCoverage(core::ProductTable(), loop.coverage, step.coverage);
  fmt::print("{}{} edges, the least taken one {} times, {} wanted\n", report.text, report.edges, report.fewest,
             *arguments.coverage);
  return report.fewest >= *arguments.coverage ? 0 : 1;
}

}  // namespace

int RunCommandLine(const std::vector<std::string>& words) {
  const std::optional<Arguments> arguments = Parse(words);
  if (!arguments) {
    fmt::print(stderr, "{}", kUsage);
    return 2;
  }
  if (arguments->seed) return Replay(*arguments->seed, *arguments);
  return RunBoth(*arguments);
}

}  // namespace tp::sim
