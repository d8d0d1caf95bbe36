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
constexpr std::string_view kXidMark = "NVRM: Xid (";

constexpr std::array kServiceXids = {46, 48, 62, 64, 74, 79, 95, 119, 120, 140, 143};

std::string_view Trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r')) text.remove_suffix(1);
  return text;
}

template <typename Number>
std::optional<Number> NumberOf(std::string_view text, int base = 10) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
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

std::optional<Xid> ParseXid(std::string_view line) {
  const size_t mark = line.find(kXidMark);
  if (mark == std::string_view::npos) return std::nullopt;
  line.remove_prefix(mark + kXidMark.size());
  const size_t close = line.find("):");
  if (close == std::string_view::npos) return std::nullopt;
  std::string bus = BusOf(line.substr(0, close));
  line = Trimmed(line.substr(close + 2));
  const size_t comma = std::min(line.find(','), line.size());
  const std::optional<int> code = NumberOf<int>(line.substr(0, comma));
  if (bus.empty() || !code) return std::nullopt;
  const std::string_view text = comma < line.size() ? Trimmed(line.substr(comma + 1)) : std::string_view();
  return Xid{.bus = std::move(bus), .code = *code, .text = std::string(text.substr(0, kMaxXidText))};
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

GpuReport ParseGpuQuery(std::string_view output) {
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
  std::map<int, std::string> broken;
  std::map<std::string, int> index_of_bus;
  for (int index = 0; index < expected; ++index) {
    const auto answers = [index](const GpuSight& card) { return card.index == index; };
    if (std::none_of(report.cards.begin(), report.cards.end(), answers)) {
      broken[index] = report.faults.empty() ? "nvidia-smi does not list it"
                                            : fmt::format("nvidia-smi does not list it: {}", report.faults.front());
    }
  }
  for (const GpuSight& card : report.cards) {
    index_of_bus[card.bus] = card.index;
    if (card.uncorrected_errors.value_or(0) > 0) {
      broken.try_emplace(card.index, fmt::format("{} memory errors that ECC could not correct since the driver started",
                                                 *card.uncorrected_errors));
    }
  }
  for (const Xid& xid : xids) {
    const auto index = index_of_bus.find(xid.bus);
    if (!NeedsService(xid.code) || index == index_of_bus.end()) continue;
    broken.try_emplace(index->second, fmt::format("Xid {}: {}", xid.code, xid.text));
  }
  std::vector<BrokenCard> cards;
  cards.reserve(broken.size());
  for (auto& [index, why] : broken) cards.push_back({index, std::move(why)});
  return cards;
}

}  // namespace tp::launch
