// What a directory takes on disk. Safe from any thread; blocking.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "base/file.h"

namespace tp {

// Bytes allocated to `name` in `directory` and to everything beneath it, as WalkTree finds it. A file with several
// names counts once; where `name` is no directory, 0. `stopped`: base/walk_tree.h.
absl::StatusOr<int64_t> AllocatedBytes(const Directory& directory, const std::string& name,
                                       const std::function<bool()>& stopped);

}  // namespace tp
