// Where snapshots lie: `<storage.root>/.snapshots/`
//   blobs/<first two digits>/<sha256>   content, verified before it has this name
//   manifests/<id>                      what a snapshot holds (snapshot/manifest.h)
//   partial/<owner's key>/<sha256>      what arrived of a blob whose upload broke off
//   tmp/                                uploads under way; emptied at start
#pragma once

#include <string>
#include <string_view>

#include <fmt/format.h>

namespace tp::snapshot {

inline constexpr std::string_view kFolder = ".snapshots";

inline std::string FolderPath(std::string_view storage_root) { return fmt::format("{}/{}", storage_root, kFolder); }

// Below the folder.
inline std::string BlobPath(std::string_view sha256) { return fmt::format("blobs/{}/{}", sha256.substr(0, 2), sha256); }
inline std::string ManifestPath(std::string_view id) { return fmt::format("manifests/{}", id); }

}  // namespace tp::snapshot
