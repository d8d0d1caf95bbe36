#include "snapshot/manifest_file.h"

#include "base/status.h"
#include "snapshot/layout.h"

namespace tp::snapshot {

absl::StatusOr<Manifest> ReadManifest(const Directory& folder, const std::string& id) {
  TP_ASSIGN_OR_RETURN(const auto text, ReadSmallFile(folder, ManifestPath(id), kMaxManifestBytes));
  if (!text) return NotFound("snapshot {} is not there", id);
  TP_ASSIGN_OR_RETURN(Manifest manifest, Manifest::Parse(*text));
  if (manifest.id() == id) return manifest;
  return Error(absl::StatusCode::kDataLoss, "the manifest {} is damaged: its SHA-256 is {}",
               folder.At(ManifestPath(id)), manifest.id());
}

}  // namespace tp::snapshot
