// What a reload would change. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/server_config.h"
#include "core/registry.h"

namespace tp::config {

enum class ChangeKind : uint8_t { kAdded, kRemoved, kChanged };

// `series h200 changed`
struct Change {
  std::string what;  // series, profile, executor, framework, recipe, quota, receiver
  std::string name;
  ChangeKind kind = ChangeKind::kChanged;
  bool operator==(const Change&) const = default;

  std::string text() const;
};

// Series first, then profiles, executors, frameworks, recipes, quotas, receivers; each by name. The versions do not
// count.
std::vector<Change> Differences(const core::Registry& from, const core::Registry& to);

// Keys of tpd.yaml that come into force with a restart only and are not as tpd runs with them.
std::vector<std::string> RestartKeys(const ServerConfig& running, const ServerConfig& file);

}  // namespace tp::config
