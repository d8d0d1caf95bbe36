// Launches that were accepted and not yet handed over, kept in tpd's own data directory, so that a tpd that starts anew
// goes on with them. They hold a job's environment: nobody but tpd reads them. Thread-safe: no state of its own.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tp/launch.h"

namespace tp::node {

// What copying and starting need of a spec: its key, nonce, paths, words, ranks and limits of its records. Any bytes.
std::string RenderPendingLaunch(const LaunchSpec& spec);
// Nothing for what is torn.
std::optional<LaunchSpec> ParsePendingLaunch(std::string_view bytes);

absl::Status KeepPendingLaunch(const std::string& directory, const LaunchSpec& spec);
// Nothing: there is none of this key and nonce.
absl::StatusOr<std::optional<LaunchSpec>> FindPendingLaunch(const std::string& directory, const std::string& key,
                                                            const std::string& nonce);
void ForgetPendingLaunch(const std::string& directory, const std::string& key);

}  // namespace tp::node
