// The working directory to the server, as far as the server has not got it.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "cli/client.h"
#include "cli/file_tree.h"
#include "cli/progress.h"

namespace tp::cli {

struct UploadReport {
  std::string snapshot_id;
  // What it took.
  int64_t stats = 0;
  int64_t files_read = 0;
  int64_t blobs_sent = 0;
  int64_t blob_bytes_sent = 0;
};

// Blocking. INVALID_ARGUMENT names what of the directory can't be part of a snapshot.
absl::StatusOr<UploadReport> UploadDirectory(Client& client, const std::string& directory, Progress& progress);

// The tree as it would be sent, held against the server's limits. Nothing is sent.
absl::StatusOr<FileTree> ScanForUpload(Client& client, const std::string& directory);

}  // namespace tp::cli
