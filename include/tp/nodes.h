// What backends tell of the machines and cards that they launch on. Plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/time/time.h"

namespace tp {

// How a machine was when it was last looked at.
struct NodeSight {
  std::string node;
  bool reachable = false;
  std::string why;                                            // it is not, or is not whole
  absl::Time since;                                           // it is so
  std::optional<absl::Duration> clock_offset = std::nullopt;  // its real time minus tpd's
  std::optional<int64_t> disk_free_bytes = std::nullopt;      // where tp keeps its files there
  std::string boot_id = {};
};

// A card that something besides this deployment holds.
struct ForeignCard {
  int card = 0;
  std::string holder;  // as the engine calls it
};

// Cards of a node that are to be looked at: not those of virtual series.
struct NodeCards {
  std::string node;
  std::string address;
  int cards = 0;
};

// A card as a look found it.
struct CardSight {
  std::string node;
  int card = 0;
  std::string broken = {};  // why it gives no more work until somebody has seen to it; empty: it is not
  std::optional<absl::Time> broke_at = std::nullopt;  // by tpd's clock, to some seconds, where that is known
  std::optional<int> utilization_percent = std::nullopt;
  std::string held_by =
      {};  // a process that computes on it, whosever it is, or what else keeps it from use; empty: none
  bool operator==(const CardSight&) const = default;
};

}  // namespace tp
