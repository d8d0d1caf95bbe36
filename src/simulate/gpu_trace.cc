#include "simulate/gpu_trace.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/printable.h"
#include "core/registry.h"
#include "simulate/csv.h"

namespace tp::simulate {
namespace {

constexpr int64_t kMostSeconds = 10'000'000'000;
constexpr int64_t kMostCards = 64;

// What a table's cell may be as a name in the registry: letters become small, all else is refused.
std::optional<std::string> NameFrom(std::string_view cell) {
  std::string name(cell);
  for (char& c : name) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') && c != '-') return std::nullopt;
  }
  if (name.empty() || name.size() > 48) return std::nullopt;
  return name;
}

struct Hardware {
  std::string name;
  std::string model;
  int cards_per_node = 0;
  std::vector<std::string> nodes;

  int64_t cards() const { return cards_per_node * static_cast<int64_t>(nodes.size()); }
};

class NodeTable {
 public:
  explicit NodeTable(decode::Problems& problems) : problems_(problems) {}

  std::vector<Hardware> Read(std::string_view csv) {
    for (const CsvRow& row : ReadCsv(csv, {"sn", "gpu", "model"}, problems_)) AddNode(row);
    std::vector<Hardware> all;
    for (const auto& [model, by_cards] : models_) {
      for (const auto& [cards, nodes] : by_cards) {
        const std::string name = by_cards.size() == 1 ? model : fmt::format("{}-{}", model, cards);
        all.push_back({.name = name, .model = model, .cards_per_node = cards, .nodes = nodes});
      }
    }
    return all;
  }

 private:
  void AddNode(const CsvRow& row) {
    const auto name = NameFrom(row.cells[0]);
    const auto cards = WholeNumber(row.cells[1], 1, kMostCards);
    const auto model = NameFrom(row.cells[2]);
    if (!name || !cards || !model || *model == core::kDefaultProfile) {
      problems_.Add({row.line, 1}, fmt::format("not a node: {} with {} cards of model {}", Quoted(row.cells[0]),
                                               Quoted(row.cells[1]), Quoted(row.cells[2])));
    } else if (!names_.insert(*name).second) {
      problems_.Add({row.line, 1}, fmt::format("node {} is here twice", *name));
    } else {
      models_[*model][static_cast<int>(*cards)].push_back(*name);
    }
  }

  decode::Problems& problems_;
  std::map<std::string, std::map<int, std::vector<std::string>>> models_;  // nodes by cards of each
  std::set<std::string> names_;
};

class TaskTable {
 public:
  TaskTable(const std::vector<Hardware>& hardware, decode::Problems& problems)
      : hardware_(hardware), problems_(problems) {}

  Workload Read(std::string_view csv) {
    const std::vector<std::string> columns = {"num_gpu",       "gpu_milli",     "gpu_spec",      "qos",
                                              "creation_time", "deletion_time", "scheduled_time"};
    for (const CsvRow& row : ReadCsv(csv, columns, problems_)) AddTask(row);
    const auto note = [this](int64_t count, std::string_view what) {
      if (count > 0) workload_.notes.push_back(fmt::format("{} tasks {}", count, what));
    };
    note(parts_, "use a part of a card and get a whole one");
    note(several_, "may use several models and take the first");
    note(never_started_, "were never started there and run from their creation to their end");
    return std::move(workload_);
  }

 private:
  void AddTask(const CsvRow& row) {
    const auto cards = WholeNumber(row.cells[0], 0, kMostCards);
    const auto created = WholeNumber(row.cells[4], 0, kMostSeconds);
    const auto ended = WholeNumber(row.cells[5], 0, kMostSeconds);
    const bool started = !row.cells[6].empty();
    const auto began = started ? WholeNumber(row.cells[6], 0, kMostSeconds) : created;
    const auto user = NameFrom(row.cells[3]);
    if (!cards || !created || !ended || !began || !user || *ended < *began) {
      problems_.Add({row.line, 1}, fmt::format("not a task: {} cards, class {}, created {}, started {}, ended {}",
                                               Quoted(row.cells[0]), Quoted(row.cells[3]), Quoted(row.cells[4]),
                                               Quoted(row.cells[6]), Quoted(row.cells[5])));
      return;
    }
    never_started_ += started ? 0 : 1;
    parts_ += *cards == 1 && WholeNumber(row.cells[1], 0, 999) ? 1 : 0;
    several_ += row.cells[2].find('|') != std::string_view::npos ? 1 : 0;
    Submission& job = workload_.jobs.emplace_back();
    job.at = absl::Seconds(*created);
    job.user = *user;
    job.runs = absl::Seconds(*ended - *began);
    Place(job, *cards, row.cells[2].substr(0, row.cells[2].find('|')));
  }

  void Place(Submission& job, int64_t cards, std::string_view model) {
    if (cards == 0) {
      job.profile = fmt::format("{}:1", core::kDefaultProfile);
      return;
    }
    const Hardware* const chosen = Largest(cards, model.empty() ? std::nullopt : NameFrom(model));
    if (!chosen) {
      job.profile = fmt::format("{}:{}", model, cards);
      job.refused = fmt::format("no node of model {} has {} cards", model.empty() ? "any" : model, cards);
      return;
    }
    job.profile = fmt::format("{}:{}", chosen->name, cards);
  }

  const Hardware* Largest(int64_t cards, const std::optional<std::string>& model) const {
    const Hardware* largest = nullptr;
    for (const Hardware& one : hardware_) {
      if (one.cards_per_node < cards || (model && one.model != *model)) continue;
      if (!largest || one.cards() > largest->cards()) largest = &one;
    }
    return largest;
  }

  const std::vector<Hardware>& hardware_;
  decode::Problems& problems_;
  Workload workload_;
  int64_t parts_ = 0;
  int64_t several_ = 0;
  int64_t never_started_ = 0;
};

void AddSeries(config::RegistryFile& file, const std::string& name, int cards_per_node,
               const std::vector<std::string>& nodes) {
  config::SeriesEntry series;
  series.gpus_per_node = cards_per_node;
  for (const std::string& node : nodes) series.nodes.push_back({.name = {.value = node, .at = {}}, .address = ""});
  file.series.push_back({.key = name, .at = {}, .value = std::move(series)});
  config::ProfileEntry profile;
  profile.series.value = name;
  file.profiles.push_back({.key = name, .at = {}, .value = std::move(profile)});
}

config::RegistryFile RegistryOf(const std::vector<Hardware>& hardware) {
  config::RegistryFile file;
  std::vector<std::string> nodes;
  for (const Hardware& one : hardware) {
    AddSeries(file, one.name, one.cards_per_node, one.nodes);
    nodes.insert(nodes.end(), one.nodes.begin(), one.nodes.end());
  }
  std::sort(nodes.begin(), nodes.end());
  AddSeries(file, std::string(core::kDefaultProfile), 0, nodes);
  return file;
}

}  // namespace

GpuTrace ReadGpuTrace(std::string_view nodes_csv, decode::Problems& nodes_problems, std::string_view tasks_csv,
                      decode::Problems& tasks_problems) {
  GpuTrace trace;
  const std::vector<Hardware> hardware = NodeTable(nodes_problems).Read(nodes_csv);
  trace.registry = RegistryOf(hardware);
  trace.workload = TaskTable(hardware, tasks_problems).Read(tasks_csv);
  return trace;
}

}  // namespace tp::simulate
