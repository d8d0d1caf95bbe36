#include "base/disk_usage.h"

#include <sys/stat.h>

#include "absl/container/flat_hash_set.h"
#include "base/status.h"
#include "base/walk_tree.h"

namespace tp {
namespace {

constexpr int64_t kBlockBytes = 512;  // of st_blocks, whatever the filesystem's own

}  // namespace

absl::StatusOr<int64_t> AllocatedBytes(const Directory& directory, const std::string& name,
                                       const std::function<bool()>& stopped) {
  int64_t bytes = 0;
  absl::flat_hash_set<ino_t> linked;  // with several names, met before
  const auto count = [&](const WalkedEntry& entry) {
    const bool once = S_ISDIR(entry.about.st_mode) || entry.about.st_nlink < 2;
    if (once || linked.insert(entry.about.st_ino).second) bytes += entry.about.st_blocks * kBlockBytes;
  };
  TP_RETURN_IF_ERROR(WalkTree(directory, name, count, stopped));
  return bytes;
}

}  // namespace tp
