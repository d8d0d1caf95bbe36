// What a directory takes on disk. Safe from any thread; blocking.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "base/file.h"

namespace tp {

// Bytes allocated to `name` in `directory` and to everything beneath it. A file with several names counts
// once, a symbolic link as itself; other filesystems mounted beneath are left out. What vanishes or moves
// away meanwhile does not count; where `name` is no directory, 0.
//
// `stopped` is asked before each entry; true ends it with CANCELLED. Any depth takes the same few
// descriptors; memory follows the names that wait to be entered. Other errors: base/file.h.
absl::StatusOr<int64_t> AllocatedBytes(const Directory& directory, const std::string& name,
                                       const std::function<bool()>& stopped);

}  // namespace tp
