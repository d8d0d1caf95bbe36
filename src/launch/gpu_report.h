// What nvidia-smi and the kernel's log say of a machine's cards. Pure; the texts are those of the tools and may hold
// anything.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"
#include "tp/launch.h"
#include "tp/nodes.h"

namespace tp::launch {

// Prints one line a card: index, bus id, utilisation in percent, uncorrected memory errors since the driver started.
inline constexpr std::string_view kGpuQuery =
    "--query-gpu=index,pci.bus_id,utilization.gpu,ecc.errors.uncorrected.volatile.total";

struct GpuSight {
  int index = 0;
  std::string bus;  // as BusOf
  std::optional<int> utilization_percent;
  std::optional<int64_t> uncorrected_errors;  // absent on cards without ECC
  bool operator==(const GpuSight&) const = default;
};

struct GpuReport {
  std::vector<GpuSight> cards;      // that answered, by index
  std::vector<std::string> faults;  // lines that were no card: `Unable to determine the device handle ...`
  // Why it does not tell of all cards, as of a tool that ended with an error; empty: it does, and what it does not list
  // is not there. One card that is gone can make the tool say nothing of the others.
  std::string cut_short = {};
};

// `0000:65:00` of `00000000:65:00.0`, `PCI:0000:65:00`; empty: it is none.
std::string BusOf(std::string_view text);

// `exit_code`: the tool's; -1: a signal ended it, or what it printed did not come whole.
GpuReport ParseGpuQuery(std::string_view output, int exit_code);

// A driver error, as `NVRM: Xid (PCI:0000:65:00): 79, pid=1, GPU has fallen off the bus.`
struct Xid {
  std::string bus;
  int code = 0;
  std::string text;
  std::optional<double> at_uptime_s = std::nullopt;  // as the kernel stamped the line
  bool operator==(const Xid&) const = default;
};
std::vector<Xid> ParseXids(std::string_view kernel_log);

// Whether a card with this error is of no use until it is reset or exchanged; the others are an application's fault
// or mended by the driver. https://docs.nvidia.com/deploy/xid-errors
bool NeedsService(int xid_code);

struct BrokenCard {
  int index = 0;
  std::string why;
  std::optional<double> at_uptime_s = std::nullopt;  // where that is known
  bool operator==(const BrokenCard&) const = default;
};

// Prints one line for each process that computes on a card.
inline constexpr std::string_view kProcessQuery = "--query-compute-apps=gpu_bus_id,pid,process_name";
inline constexpr std::string_view kQueryFormat = "--format=csv,noheader,nounits";

struct GpuProcess {
  std::string bus;
  int64_t pid = 0;
  std::string name;
  bool operator==(const GpuProcess&) const = default;
};
// Without those that are part of the driver's own service, as of MPS.
std::vector<GpuProcess> ParseGpuProcesses(std::string_view output);

// All that a look at a machine brought.
struct GpuLook {
  GpuReport report;
  std::vector<Xid> xids;
  std::vector<GpuProcess> processes;
  double uptime_s = 0;  // of the machine; 0: not known
  absl::Time at = absl::InfinitePast();
};

// A card of a machine, taken together.
struct GpuState {
  int index = 0;
  std::string broken = {};                            // why; empty: it is not
  std::optional<absl::Time> broke_at = std::nullopt;  // where that is known
  std::optional<int> utilization_percent = std::nullopt;
  // `process 4711 (python)`, the first of those that compute on it, or a driver that does not tell of it; empty: none.
  std::string held_by = {};
  bool operator==(const GpuState&) const = default;
};
// The first `expected` cards, by index.
std::vector<GpuState> StatesOf(const GpuLook& look, int expected);

// The same for a node as the registry has it.
void AddSights(const GpuLook& look, const NodeCards& node, std::vector<CardSight>& to);

// The cards that the rank is given as devices: none of virtual series.
std::vector<int> RealCardsOf(const LaunchSpec& spec, const RankLaunch& rank);

// Why a job may not begin on the cards that its ranks are given of this machine now; empty: it may. An error that is
// older was seen by looks before, and where a card is in service all the same somebody wants it so.
std::string PreflightProblem(const GpuLook& look, const LaunchSpec& spec);

// Cards that are missing among the first `expected`, have memory errors that ECC could not correct, or an error that
// needs service: the newest. One sentence each; sorted by index.
std::vector<BrokenCard> FindBrokenCards(const GpuReport& report, const std::vector<Xid>& xids, int expected);

}  // namespace tp::launch
