#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "base/file.h"
#include "base/status.h"
#include "launch/attempt_dir.h"

namespace tp::launch {
namespace {

absl::Status Refuse(std::string_view what, const std::string& path) {
  return FailedPrecondition(
      "the storage at {} does not do {} as claims and records need it: use a local disk, NFS or another "
      "filesystem with POSIX semantics",
      path, what);
}

absl::Status ProbeExclusiveCreate(const Directory& probe) {
  const int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;
  const UniqueFd first(openat(probe.fd.get(), "exclusive", flags, 0600));
  if (!first.valid()) return ErrnoStatus(errno, "create", probe.At("exclusive"));
  const UniqueFd second(openat(probe.fd.get(), "exclusive", flags, 0600));
  return !second.valid() && errno == EEXIST ? absl::OkStatus() : Refuse("exclusive create", probe.path);
}

absl::Status ProbeLink(const Directory& probe) {
  TP_ASSIGN_OR_RETURN(const bool first, LinkNewFile(probe, "linked", "first", 0600, Sync::kDurable));
  TP_ASSIGN_OR_RETURN(const bool second, LinkNewFile(probe, "linked", "second", 0600, Sync::kDurable));
  TP_ASSIGN_OR_RETURN(const std::optional<std::string> content, ReadSmallFile(probe, "linked", 64));
  return first && !second && content == "first" ? absl::OkStatus() : Refuse("link()", probe.path);
}

absl::Status ProbeRename(const Directory& probe) {
  TP_RETURN_IF_ERROR(ReplaceFile(probe, "renamed", "old", 0600, Sync::kDurable));
  TP_RETURN_IF_ERROR(ReplaceFile(probe, "renamed", "new", 0600, Sync::kDurable));
  TP_ASSIGN_OR_RETURN(const std::optional<std::string> content, ReadSmallFile(probe, "renamed", 64));
  return content == "new" ? absl::OkStatus() : Refuse("rename() over a file", probe.path);
}

absl::Status ProbeAppend(const Directory& probe) {
  for (const std::string_view part : {"one,", "two"}) {
    const UniqueFd fd(openat(probe.fd.get(), "appended", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
    if (!fd.valid()) return ErrnoStatus(errno, "append to", probe.At("appended"));
    TP_RETURN_IF_ERROR(WriteAll(fd.get(), part, probe.At("appended")));
    if (fsync(fd.get()) != 0) return ErrnoStatus(errno, "fsync", probe.At("appended"));
  }
  TP_ASSIGN_OR_RETURN(const std::optional<std::string> content, ReadSmallFile(probe, "appended", 64));
  return content == "one,two" ? absl::OkStatus() : Refuse("append", probe.path);
}

absl::Status RunProbes(const Directory& probe) {
  TP_RETURN_IF_ERROR(ProbeExclusiveCreate(probe));
  TP_RETURN_IF_ERROR(ProbeLink(probe));
  TP_RETURN_IF_ERROR(ProbeRename(probe));
  return ProbeAppend(probe);
}

}  // namespace

absl::Status ProbeStorage(const std::string& storage_root) {
  TP_ASSIGN_OR_RETURN(const Directory root, OpenDirectory(storage_root));
  const std::string name = ".probe." + RandomName();
  TP_ASSIGN_OR_RETURN(const Directory probe, MakeDirectoriesBeneath(storage_root, name, 0700));
  const absl::Status probed = RunProbes(probe);
  const absl::Status removed = RemoveTree(root, name);
  return probed.ok() ? removed : probed;
}

}  // namespace tp::launch
