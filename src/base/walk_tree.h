// Goes through all that is beneath a directory. Safe from any thread; blocking.
#pragma once

#include <sys/stat.h>

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "base/file.h"

namespace tp {

// One of what is found: the top directory itself first, of which `folder` and `name` are empty.
struct WalkedEntry {
  const std::string& folder;  // from the top: empty, or with a slash at its end
  const std::string& name;
  const struct stat& about;
};

// Calls `visit` for `name` in `directory` and everything beneath it: a symbolic link as itself, other filesystems that
// are mounted beneath not at all. What vanishes or moves away meanwhile is left out; so is all where `name` is no
// directory.
//
// `stopped` is asked before each entry; true ends it with CANCELLED. Any depth takes the same few
// descriptors; memory follows the names that wait to be entered. Other errors: base/file.h.
absl::Status WalkTree(const Directory& directory, const std::string& name,
                      const std::function<void(const WalkedEntry&)>& visit, const std::function<bool()>& stopped);

}  // namespace tp
