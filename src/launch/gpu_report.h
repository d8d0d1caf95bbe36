// What nvidia-smi and the kernel's log say of a machine's cards. Pure; the texts are those of the tools and may hold
// anything.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

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
};

// `0000:65:00` of `00000000:65:00.0`, `PCI:0000:65:00`; empty: it is none.
std::string BusOf(std::string_view text);

GpuReport ParseGpuQuery(std::string_view output);

// A driver error, as `NVRM: Xid (PCI:0000:65:00): 79, pid=1, GPU has fallen off the bus.`
struct Xid {
  std::string bus;
  int code = 0;
  std::string text;
  bool operator==(const Xid&) const = default;
};
std::vector<Xid> ParseXids(std::string_view kernel_log);

// Whether a card with this error is of no use until it is reset or exchanged; the others are an application's fault
// or mended by the driver. https://docs.nvidia.com/deploy/xid-errors
bool NeedsService(int xid_code);

struct BrokenCard {
  int index = 0;
  std::string why;
  bool operator==(const BrokenCard&) const = default;
};

// Cards that are missing among the first `expected`, have memory errors that ECC could not correct, or an error that
// needs service. One sentence each; sorted by index.
std::vector<BrokenCard> FindBrokenCards(const GpuReport& report, const std::vector<Xid>& xids, int expected);

}  // namespace tp::launch
