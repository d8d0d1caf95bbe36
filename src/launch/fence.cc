#include <fcntl.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>

#include <fmt/format.h>

#include "base/fault_point.h"
#include "base/file.h"
#include "base/status.h"
#include "launch/attempt_dir.h"
#include "launch/host.h"
#include "launch/record.h"

namespace tp::launch {
namespace {

constexpr char kFence[] = "fence";
constexpr std::string_view kClosed = "closed\n";

absl::StatusOr<Directory> MakeAttemptDirectory(const AttemptTarget& target, const std::string& storage_root) {
  if (!target.attempt_dir.starts_with(storage_root + "/")) {
    return InvalidArgument("{} is not beneath storage.root {}", target.attempt_dir, storage_root);
  }
  return MakeDirectoriesBeneath(storage_root, target.attempt_dir.substr(storage_root.size() + 1), 02770);
}

absl::StatusOr<FenceResult> TryFence(const AttemptTarget& target, const std::string& storage_root) {
  TP_ASSIGN_OR_RETURN(const Directory directory, MakeAttemptDirectory(target, storage_root));
  TP_ASSIGN_OR_RETURN(const HostIdentity host, ReadHostIdentity());
  const std::string claim = RenderFenceClaim(target.key, host.host, host.boot_id);
  ReachFaultPoint(FaultPoint::kBeforeFenceClaim);
  // The answer of link() may be lost on the way while the link was made: what counts is the content.
  const absl::Status linked = LinkNewFile(directory, kAttemptClaim, claim, 0660, Sync::kDurable).status();
  ReachFaultPoint(FaultPoint::kAfterFenceClaim);
  TP_ASSIGN_OR_RETURN(const std::optional<std::string> bytes, ReadSmallFile(directory, kAttemptClaim, kMaxRecordBytes));
  if (!bytes) return linked.ok() ? NotFound("{} is not there after linking it", directory.At(kAttemptClaim)) : linked;
  std::optional<AttemptClaim> found = ParseAttemptClaim(*bytes, target.key);
  if (!found) return FailedPrecondition("{} is torn or of another attempt", directory.At(kAttemptClaim));
  if (!found->fenced) return FenceLost{std::move(found->nonce)};
  TP_RETURN_IF_ERROR(SyncDirectory(directory));
  return FenceWon{};
}

}  // namespace

FenceResult FenceAttempt(const AttemptTarget& target, const std::string& storage_root) {
  absl::StatusOr<FenceResult> result = TryFence(target, storage_root);
  if (!result.ok()) return FenceFailed{std::string(Message(result.status()))};
  return *std::move(result);
}

absl::Status CloseFence(const std::string& attempt_dir) {
  TP_ASSIGN_OR_RETURN(const Directory directory, OpenDirectory(attempt_dir));
  const std::string path = directory.At(kFence);
  ReachFaultPoint(FaultPoint::kBeforeFenceClose);
  const UniqueFd fd(openat(directory.fd.get(), kFence, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0660));
  if (!fd.valid()) return ErrnoStatus(errno, "open", path);
  TP_RETURN_IF_ERROR(WriteAll(fd.get(), kClosed, path));
  if (ftruncate(fd.get(), static_cast<off_t>(kClosed.size())) != 0 || fsync(fd.get()) != 0) {
    return ErrnoStatus(errno, "close the fence", path);
  }
  TP_RETURN_IF_ERROR(SyncDirectory(directory));
  ReachFaultPoint(FaultPoint::kAfterFenceClose);
  return absl::OkStatus();
}

absl::Status AnnouncePause(const std::string& attempt_dir) {
  TP_ASSIGN_OR_RETURN(const Directory directory, OpenDirectory(attempt_dir));
  ReachFaultPoint(FaultPoint::kBeforePauseFile);
  const UniqueFd fd(openat(directory.fd.get(), "pause", O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0660));
  if (!fd.valid()) return ErrnoStatus(errno, "create", directory.At("pause"));
  ReachFaultPoint(FaultPoint::kAfterPauseFile);
  return absl::OkStatus();
}

}  // namespace tp::launch
