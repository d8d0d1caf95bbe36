#include "launch/gpu_report.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>

#include <fmt/format.h>

namespace tp::launch {
namespace {

constexpr size_t kColumns = 4;
constexpr size_t kMaxFaults = 16;
constexpr size_t kMaxXidText = 200;
constexpr int kGpuIsLost = 15;  // of nvidia-smi: it lists the others
constexpr std::string_view kXidMark = "NVRM: Xid (";
constexpr std::string_view kMpsServer = "nvidia-cuda-mps-server";

// Between an error and the look that takes its card out of service.
constexpr double kFreshXidS = 60;

constexpr std::array kServiceXids = {46, 48, 62, 64, 74, 79, 95, 119, 120, 140, 143};

std::string_view Trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r')) text.remove_suffix(1);
  return text;
}

template <typename Number, typename... How>
std::optional<Number> NumberOf(std::string_view text, How... how) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, how...);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return number;
}

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const size_t at = text.find(separator);
    parts.push_back(Trimmed(text.substr(0, at)));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

std::optional<GpuSight> ParseCard(std::string_view line) {
  const std::vector<std::string_view> columns = Split(line, ',');
  if (columns.size() != kColumns) return std::nullopt;
  const std::optional<int> index = NumberOf<int>(columns[0]);
  std::string bus = BusOf(columns[1]);
  if (!index || *index < 0 || bus.empty()) return std::nullopt;
  return GpuSight{.index = *index,
                  .bus = std::move(bus),
                  .utilization_percent = NumberOf<int>(columns[2]),
                  .uncorrected_errors = NumberOf<int64_t>(columns[3])};
}

// Of `[ 1234.567890] NVRM: ...`.
std::optional<double> KernelStamp(std::string_view line) {
  if (!line.starts_with('[')) return std::nullopt;
  return NumberOf<double>(Trimmed(line.substr(1, line.find(']') - 1)), std::chars_format::fixed);
}

std::optional<Xid> ParseXid(std::string_view line) {
  const size_t mark = line.find(kXidMark);
  if (mark == std::string_view::npos) return std::nullopt;
  const std::optional<double> stamp = KernelStamp(line.substr(0, mark));
  line.remove_prefix(mark + kXidMark.size());
  const size_t close = line.find("):");
  if (close == std::string_view::npos) return std::nullopt;
  std::string bus = BusOf(line.substr(0, close));
  line = Trimmed(line.substr(close + 2));
  const size_t comma = std::min(line.find(','), line.size());
  const std::optional<int> code = NumberOf<int>(line.substr(0, comma));
  if (bus.empty() || !code) return std::nullopt;
  const std::string_view text = comma < line.size() ? Trimmed(line.substr(comma + 1)) : std::string_view();
  return Xid{
      .bus = std::move(bus), .code = *code, .text = std::string(text.substr(0, kMaxXidText)), .at_uptime_s = stamp};
}

std::optional<GpuProcess> ParseProcess(std::string_view line) {
  const std::vector<std::string_view> columns = Split(line, ',');
  if (columns.size() < 3) return std::nullopt;
  std::string bus = BusOf(columns[0]);
  const std::optional<int64_t> pid = NumberOf<int64_t>(columns[1]);
  const std::string_view path = columns[2];  // a comma in a name costs the rest of it
  if (bus.empty() || !pid || path.ends_with(kMpsServer)) return std::nullopt;
  const std::string_view name = path.substr(path.rfind('/') + 1);
  return GpuProcess{.bus = std::move(bus), .pid = *pid, .name = std::string(name.substr(0, kMaxXidText))};
}

const GpuSight* Find(const GpuReport& report, int index) {
  const auto found = std::find_if(report.cards.begin(), report.cards.end(),
                                  [index](const GpuSight& card) { return card.index == index; });
  return found == report.cards.end() ? nullptr : &*found;
}

std::string ProcessOn(const GpuLook& look, const GpuSight& card) {
  for (const GpuProcess& process : look.processes) {
    if (process.bus == card.bus) return fmt::format("process {} ({})", process.pid, process.name);
  }
  return "";
}

std::string FreshFault(const GpuLook& look, const GpuSight& card) {
  for (const Xid& xid : look.xids) {
    const bool fresh = xid.at_uptime_s && look.uptime_s - *xid.at_uptime_s < kFreshXidS;
    if (xid.bus == card.bus && NeedsService(xid.code) && fresh) return fmt::format("Xid {}: {}", xid.code, xid.text);
  }
  return "";
}

std::string CardProblem(const GpuLook& look, int index, const std::string& node) {
  const GpuSight* const card = Find(look.report, index);
  if (card == nullptr && !look.report.cut_short.empty()) {
    return fmt::format("nvidia-smi does not tell of card {} of {}: {}", index, node, look.report.cut_short);
  }
  if (card == nullptr) return fmt::format("card {} of {} is not there: nvidia-smi does not list it", index, node);
  if (const std::string fault = FreshFault(look, *card); !fault.empty()) {
    return fmt::format("card {} of {} has just broken: {}", index, node, fault);
  }
  const std::string process = ProcessOn(look, *card);
  if (process.empty()) return "";
  return fmt::format("card {} of {} is in use by {}, which is not tp's: end it there, or wait for it", index, node,
                     process);
}

}  // namespace

std::string BusOf(std::string_view text) {
  text = Trimmed(text);
  if (text.starts_with("PCI:")) text.remove_prefix(4);
  const std::vector<std::string_view> parts = Split(text, ':');
  if (parts.size() != 3) return "";
  const auto domain = NumberOf<uint32_t>(parts[0], 16);
  const auto bus = NumberOf<uint32_t>(parts[1], 16);
  const auto device = NumberOf<uint32_t>(parts[2].substr(0, parts[2].find('.')), 16);
  if (!domain || !bus || !device) return "";
  return fmt::format("{:04x}:{:02x}:{:02x}", *domain, *bus, *device);
}

GpuReport ParseGpuQuery(std::string_view output, int exit_code) {
  GpuReport report;
  for (const std::string_view line : Split(output, '\n')) {
    if (line.empty()) continue;
    if (auto card = ParseCard(line)) {
      report.cards.push_back(*std::move(card));
    } else if (report.faults.size() < kMaxFaults) {
      report.faults.emplace_back(line.substr(0, kMaxXidText));
    }
  }
  std::sort(report.cards.begin(), report.cards.end(),
            [](const GpuSight& a, const GpuSight& b) { return a.index < b.index; });
  if ((exit_code == 0 || exit_code == kGpuIsLost) && !report.cards.empty()) return report;
  report.cut_short = !report.faults.empty() ? report.faults.front()
                     : exit_code < 0        ? "its answer was cut short"
                                            : fmt::format("it ended with {}", exit_code);
  return report;
}

std::vector<Xid> ParseXids(std::string_view kernel_log) {
  std::vector<Xid> xids;
  for (const std::string_view line : Split(kernel_log, '\n')) {
    if (auto xid = ParseXid(line)) xids.push_back(*std::move(xid));
  }
  return xids;
}

bool NeedsService(int xid_code) {
  return std::find(kServiceXids.begin(), kServiceXids.end(), xid_code) != kServiceXids.end();
}

std::vector<BrokenCard> FindBrokenCards(const GpuReport& report, const std::vector<Xid>& xids, int expected) {
  std::map<int, BrokenCard> broken;
  std::map<std::string, int> index_of_bus;
  for (int index = 0; index < expected && report.cut_short.empty(); ++index) {
    if (Find(report, index) != nullptr) continue;
    broken[index] = {index, report.faults.empty()
                                ? "nvidia-smi does not list it"
                                : fmt::format("nvidia-smi does not list it: {}", report.faults.front())};
  }
  for (const GpuSight& card : report.cards) {
    index_of_bus[card.bus] = card.index;
    if (card.uncorrected_errors.value_or(0) > 0) {
      broken[card.index] = {card.index,
                            fmt::format("{} memory errors that ECC could not correct since the driver started",
                                        *card.uncorrected_errors)};
    }
  }
  for (const Xid& xid : xids) {
    const auto index = index_of_bus.find(xid.bus);
    if (!NeedsService(xid.code) || index == index_of_bus.end()) continue;
    const auto [known, added] = broken.try_emplace(index->second);
    if (!added && !known->second.at_uptime_s) continue;
    known->second = {index->second, fmt::format("Xid {}: {}", xid.code, xid.text), xid.at_uptime_s};
  }
  std::vector<BrokenCard> cards;
  cards.reserve(broken.size());
  for (auto& [index, card] : broken) cards.push_back(std::move(card));
  return cards;
}

std::vector<GpuProcess> ParseGpuProcesses(std::string_view output) {
  std::vector<GpuProcess> processes;
  for (const std::string_view line : Split(output, '\n')) {
    if (auto process = ParseProcess(line)) processes.push_back(*std::move(process));
  }
  return processes;
}

std::vector<GpuState> StatesOf(const GpuLook& look, int expected) {
  std::vector<GpuState> states(static_cast<size_t>(std::max(expected, 0)));
  for (size_t i = 0; i < states.size(); ++i) {
    states[i].index = static_cast<int>(i);
    const GpuSight* const card = Find(look.report, states[i].index);
    if (card != nullptr) {
      states[i].utilization_percent = card->utilization_percent;
      states[i].held_by = ProcessOn(look, *card);
    } else if (!look.report.cut_short.empty()) {
      states[i].held_by = fmt::format("a driver that fails (nvidia-smi: {})", look.report.cut_short);
    }
  }
  for (BrokenCard& broken : FindBrokenCards(look.report, look.xids, expected)) {
    if (broken.index >= expected) continue;
    GpuState& state = states[static_cast<size_t>(broken.index)];
    state.broken = std::move(broken.why);
    if (broken.at_uptime_s) state.broke_at = look.at - absl::Seconds(look.uptime_s - *broken.at_uptime_s);
  }
  return states;
}

void AddSights(const GpuLook& look, const NodeCards& node, std::vector<CardSight>& to) {
  for (GpuState& state : StatesOf(look, node.cards)) {
    to.push_back({.node = node.node,
                  .card = state.index,
                  .broken = std::move(state.broken),
                  .broke_at = state.broke_at,
                  .utilization_percent = state.utilization_percent,
                  .held_by = std::move(state.held_by)});
  }
}

std::vector<int> RealCardsOf(const LaunchSpec& spec, const RankLaunch& rank) {
  const auto pool = static_cast<size_t>(rank.pool);
  if (pool < spec.demands.size() && spec.demands[pool].virtual_cards) return {};
  return rank.placement.cards;
}

std::string PreflightProblem(const GpuLook& look, const LaunchSpec& spec) {
  for (const RankLaunch& rank : spec.ranks) {
    for (const int card : RealCardsOf(spec, rank)) {
      std::string problem = CardProblem(look, card, rank.placement.node);
      if (!problem.empty()) return problem;
    }
  }
  return "";
}

}  // namespace tp::launch
