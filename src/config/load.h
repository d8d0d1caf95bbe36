// From a directory with tpd.yaml and registry.yaml to what tpd runs on.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "config/server_config.h"
#include "core/registry.h"

namespace tp::config {

inline constexpr std::string_view kServerFileName = "tpd.yaml";
inline constexpr std::string_view kRegistryFileName = "registry.yaml";

// The two files that are built in and stand for one that is missing: config/ of the repository.
extern const std::string_view kEmbeddedServerFile;
extern const std::string_view kEmbeddedRegistryFile;

struct Loaded {
  ServerConfig server;
  core::Registry registry;
  bool operator==(const Loaded&) const = default;
};

struct SourceFile {
  std::string name;  // in problems
  std::string text;
};

struct Sources {
  SourceFile server;
  SourceFile registry;
  bool in_kubernetes = false;  // decides platform.default_backend where it is not given

  // SHA-256 of both texts as hex: whether what is on disk is what was read.
  std::string Hash() const;
};

// Pure. INVALID_ARGUMENT: `file:line:column: sentence`, a line for each problem of both files.
absl::StatusOr<Loaded> Load(const Sources& sources);

// A file that does not exist is taken from the embedded ones; an empty `directory` means both. Reads
// whole files from the caller's thread. NOT_FOUND for a missing directory, FAILED_PRECONDITION for a file
// that cannot be read.
absl::StatusOr<Sources> ReadSources(const std::string& directory);

// Load of ReadSources.
absl::StatusOr<Loaded> LoadDirectory(const std::string& directory, bool in_kubernetes = false);

}  // namespace tp::config
