// A stored manifest.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "base/file.h"
#include "snapshot/manifest.h"

namespace tp::snapshot {

// `folder` is .snapshots. NOT_FOUND: there is no such snapshot; DATA_LOSS: it is not what it was.
absl::StatusOr<Manifest> ReadManifest(const Directory& folder, const std::string& id);

}  // namespace tp::snapshot
