// Files as the launch contract and the snapshots need them: read whole and small, written durably,
// never through a symbolic link in the last component. Safe from any thread.
//
// Errors: NOT_FOUND where the file does not exist, ALREADY_EXISTS, PERMISSION_DENIED,
// RESOURCE_EXHAUSTED (disk or quota full), else UNAVAILABLE; the sentence names what was done, the path
// and the errno.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/fd.h"

namespace tp {

// `doing` completes "cannot ...", e.g. "read".
absl::Status ErrnoStatus(int error, std::string_view doing, std::string_view path);

// A directory together with its path for messages.
struct Directory {
  UniqueFd fd;
  std::string path;

  std::string At(std::string_view name) const { return path + "/" + std::string(name); }
};

absl::StatusOr<Directory> OpenDirectory(const std::string& path);

// Walks from `root` (which must exist) down `relative`, making what is missing with `mode`. No component
// may be a symbolic link, `.` or `..`, so that the result lies beneath the root.
absl::StatusOr<Directory> MakeDirectoriesBeneath(const std::string& root, std::string_view relative, mode_t mode);

// The last bytes of a file, at most `max_bytes`; nothing where it does not exist. An error for what is not a regular
// file.
absl::StatusOr<std::optional<std::string>> ReadFileEnd(const Directory& directory, const std::string& name,
                                                       size_t max_bytes);

// Nothing where the file does not exist. An error for what is not a regular file or longer than
// `max_bytes`.
absl::StatusOr<std::optional<std::string>> ReadSmallFile(const Directory& directory, const std::string& name,
                                                         size_t max_bytes);

absl::Status WriteAll(int fd, std::string_view bytes, std::string_view path);

absl::Status SyncDirectory(const Directory& directory);

// Takes the flock of `fd`; false: another process holds it. A killed holder's lock lives on in a child that
// it was about to start, until that execs: waits up to two seconds.
absl::StatusOr<bool> TakeLock(int fd, std::string_view path);

// kDurable: file and directory are fsynced. kNone: whole or not there for every reader, but a power cut
// may lose it.
enum class Sync { kNone, kDurable };

// By a temporary file and rename(): afterwards the name holds exactly these bytes.
absl::Status ReplaceFile(const Directory& directory, const std::string& name, std::string_view bytes, mode_t mode,
                         Sync sync);

// By a temporary file and link(): true when this call made the name, false when it was there already.
absl::StatusOr<bool> LinkNewFile(const Directory& directory, const std::string& name, std::string_view bytes,
                                 mode_t mode, Sync sync);

// Removes a file or a whole directory tree, symbolic links as links. Missing is OK.
absl::Status RemoveTree(const Directory& directory, const std::string& name);

// 128 random bits as hex, for names of temporary files.
std::string RandomName();

}  // namespace tp
