// What an engine says of itself. Pure.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace tp::docker {

struct EngineFacts {
  std::string api_version;  // of the engine, `1.41`
  bool podman = false;
  bool nvidia_runtime = false;
  std::set<int> cdi_cards;  // that it has by names of the Container Device Interface
};

// Of the answers to GET /version and GET /info. FAILED_PRECONDITION: an engine whose API tp does not speak, or in whose
// containers users are others; UNAVAILABLE: not an engine's answers.
absl::StatusOr<EngineFacts> ReadFacts(std::string_view version_json, std::string_view info_json);

// Of `nvidia.com/gpu=3`; nothing for another name.
std::optional<int> CdiCard(std::string_view name);
std::string CdiName(int card);

}  // namespace tp::docker
