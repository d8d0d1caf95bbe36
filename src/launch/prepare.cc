#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include <fmt/format.h>

#include "base/fault_point.h"
#include "base/file.h"
#include "base/status.h"
#include "launch/attempt_dir.h"
#include "snapshot/checkout.h"

namespace tp::launch {
namespace {

// tpd's group reads the records whoever writes them (DESIGN 3, run_as).
constexpr mode_t kDirectoryMode = 02770;
constexpr mode_t kFileMode = 0660;
constexpr std::string_view kWork = "work";

absl::StatusOr<Directory> MakeUnderRoot(const std::string& storage_root, std::string_view path) {
  if (!path.starts_with(storage_root + "/")) {
    return InvalidArgument("{} is not beneath storage.root {}", path, storage_root);
  }
  return MakeDirectoriesBeneath(storage_root, path.substr(storage_root.size() + 1), kDirectoryMode);
}

absl::StatusOr<bool> Exists(const Directory& directory, const std::string& name) {
  struct stat about {};
  if (fstatat(directory.fd.get(), name.c_str(), &about, AT_SYMLINK_NOFOLLOW) == 0) return true;
  if (errno == ENOENT) return false;
  return ErrnoStatus(errno, "look at", directory.At(name));
}

absl::Status FillWork(const LaunchSpec& spec, const std::string& storage_root, const Directory& attempt,
                      const std::string& name) {
  TP_ASSIGN_OR_RETURN(const Directory work, MakeDirectoriesBeneath(attempt.path, name, kDirectoryMode));
  if (spec.snapshot_id.empty()) return absl::OkStatus();
  ReachFaultPoint(FaultPoint::kBeforeCheckout);
  absl::Status filled = snapshot::Checkout(storage_root, spec.snapshot_id, work.path).status();
  ReachFaultPoint(FaultPoint::kAfterCheckout);
  if (absl::IsNotFound(filled) || absl::IsDataLoss(filled)) {
    return NotFound("the snapshot of {} is gone ({}): submit again", spec.run_id, Message(filled));
  }
  return filled;
}

// Filled under another name first: work/ is there whole or not at all, and the first of several
// launches provides it.
absl::Status ProvideWork(const LaunchSpec& spec, const std::string& storage_root, const Directory& attempt) {
  TP_ASSIGN_OR_RETURN(const bool provided, Exists(attempt, std::string(kWork)));
  if (provided) return absl::OkStatus();
  const std::string temporary = ".work." + RandomName();
  absl::Status status = FillWork(spec, storage_root, attempt, temporary);
  if (status.ok()) {
    const int fd = attempt.fd.get();
    if (renameat(fd, temporary.c_str(), fd, std::string(kWork).c_str()) == 0) return absl::OkStatus();
    // An empty work/ would have been replaced, so a rename that failed found a filled one.
    if (errno != ENOTEMPTY && errno != EEXIST) status = ErrnoStatus(errno, "rename to", attempt.At(kWork));
  }
  // What is left over is in nobody's way; the first error counts.
  RemoveTree(attempt, temporary).IgnoreError();
  return status;
}

absl::Status WriteOverrides(const LaunchSpec& spec, const Directory& attempt) {
  for (size_t pool = 0; pool < spec.overrides_json.size(); ++pool) {
    const std::string name = pool == 0 ? "overrides.json" : fmt::format("overrides-{}.json", pool);
    TP_RETURN_IF_ERROR(ReplaceFile(attempt, name, spec.overrides_json[pool], kFileMode, Sync::kNone));
  }
  return absl::OkStatus();
}

}  // namespace

// Nothing here is fsynced: a power cut ends the ranks too, and a fence lost with it reads as unreadable,
// which starts nothing.
absl::Status PrepareAttempt(const LaunchSpec& spec, const std::string& storage_root) {
  const AttemptPaths& paths = spec.paths;
  if (paths.work_dir != fmt::format("{}/{}", paths.attempt_dir, kWork)) {
    return InvalidArgument("the work directory {} is not {}/{}", paths.work_dir, paths.attempt_dir, kWork);
  }
  TP_RETURN_IF_ERROR(MakeUnderRoot(storage_root, paths.output_dir).status());
  TP_RETURN_IF_ERROR(MakeUnderRoot(storage_root, paths.results_dir).status());
  TP_ASSIGN_OR_RETURN(const Directory attempt, MakeUnderRoot(storage_root, paths.attempt_dir));
  ReachFaultPoint(FaultPoint::kAttemptDirectoryMade);
  TP_RETURN_IF_ERROR(ProvideWork(spec, storage_root, attempt));
  ReachFaultPoint(FaultPoint::kWorkProvided);
  TP_RETURN_IF_ERROR(ReplaceFile(attempt, "spec.json", RenderSpecJson(spec), kFileMode, Sync::kNone));
  ReachFaultPoint(FaultPoint::kSpecWritten);
  TP_RETURN_IF_ERROR(WriteOverrides(spec, attempt));
  TP_RETURN_IF_ERROR(LinkNewFile(attempt, "fence", "open\n", kFileMode, Sync::kNone).status());
  ReachFaultPoint(FaultPoint::kFenceOpened);
  return absl::OkStatus();
}

}  // namespace tp::launch
