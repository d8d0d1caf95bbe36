// Sends the content of files that the server is missing, over several streams.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/client.h"
#include "cli/file_tree.h"
#include "cli/progress.h"

namespace tp::cli {

struct SendCost {
  int64_t blobs = 0;
  int64_t bytes = 0;
};

// Asks what of the tree's content is missing and sends that. A connection that breaks is bridged as for any
// call, and each try goes on where the one before ended. INVALID_ARGUMENT: a file can't be read or has changed.
absl::StatusOr<SendCost> SendMissing(Client& client, const FileTree& tree, Progress& progress);

}  // namespace tp::cli
