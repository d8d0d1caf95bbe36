// Servers that the user has given names: `~/.config/tp/config.json` (TP_CONFIG or XDG_CONFIG_HOME move
// it). Blocking file I/O.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tp::cli {

struct NamedServer {
  std::string address;     // as --server takes it
  std::string token_file;  // empty: TP_TOKEN or TP_TOKEN_FILE, or none
  std::string ca_file;     // empty: the system's authorities
};

struct Contexts {
  std::string current;  // in use; empty: none
  std::map<std::string, NamedServer> servers;
};

std::string ContextsFile();

// None where the file is missing. INVALID_ARGUMENT names what is wrong with it.
absl::StatusOr<Contexts> LoadContexts(const std::string& path);

// Whole or not at all, for its owner only; the directory is made.
absl::Status SaveContexts(const std::string& path, const Contexts& contexts);

// NOT_FOUND with what is near.
absl::StatusOr<NamedServer> FindContext(const Contexts& contexts, const std::string& name);

// Letters, digits and `._-`: a context's name is also a file's.
absl::Status CheckContextName(std::string_view name);

// Keeps a token in a file of its own beside the contexts, for its owner only; returns its path.
absl::StatusOr<std::string> StoreToken(const std::string& contexts_file, const std::string& name,
                                       std::string_view token);

}  // namespace tp::cli
