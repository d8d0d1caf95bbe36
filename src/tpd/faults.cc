// TP_CRASH_AT=POINT:N: SIGKILL to this process when it is at the fault point for the N-th time of its life.
// TP_COLLECT_AFTER_MS=T: snapshots that no run needs are collected after so long.
#include "tpd/faults.h"

#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "base/fault_point.h"
#include "base/status.h"

namespace tp::tpd {
namespace {

std::string_view Name(FaultPoint point) {
  switch (point) {
    case FaultPoint::kBeforeCommit:
      return "before-commit";
    case FaultPoint::kAfterCommit:
      return "after-commit";
    case FaultPoint::kBeforeCorrectionCommit:
      return "before-correction-commit";
    case FaultPoint::kAfterCorrectionCommit:
      return "after-correction-commit";
    case FaultPoint::kBeforeLockWrite:
      return "before-lock-write";
    case FaultPoint::kAfterLockWrite:
      return "after-lock-write";
    case FaultPoint::kBeforeMigration:
      return "before-migration";
    case FaultPoint::kAfterMigration:
      return "after-migration";
    case FaultPoint::kBeforeBackup:
      return "before-backup";
    case FaultPoint::kAfterBackup:
      return "after-backup";
    case FaultPoint::kBeforeEpoch:
      return "before-epoch";
    case FaultPoint::kAfterEpoch:
      return "after-epoch";
    case FaultPoint::kBeforeBallast:
      return "before-ballast";
    case FaultPoint::kAfterBallast:
      return "after-ballast";
    case FaultPoint::kBeforeSecretFile:
      return "before-secret-file";
    case FaultPoint::kAfterSecretFile:
      return "after-secret-file";
    case FaultPoint::kBeforeTokenCommit:
      return "before-token-commit";
    case FaultPoint::kAfterTokenCommit:
      return "after-token-commit";
    case FaultPoint::kBeforeLaunch:
      return "before-launch";
    case FaultPoint::kAfterLaunch:
      return "after-launch";
    case FaultPoint::kBeforeFence:
      return "before-fence";
    case FaultPoint::kAfterFence:
      return "after-fence";
    case FaultPoint::kBeforeSignal:
      return "before-signal";
    case FaultPoint::kAfterSignal:
      return "after-signal";
    case FaultPoint::kBeforeRemove:
      return "before-remove";
    case FaultPoint::kAfterRemove:
      return "after-remove";
    case FaultPoint::kBeforeLook:
      return "before-look";
    case FaultPoint::kAfterLook:
      return "after-look";
    case FaultPoint::kAnswerPosted:
      return "answer-posted";
    case FaultPoint::kAttemptDirectoryMade:
      return "attempt-directory-made";
    case FaultPoint::kBeforeCheckout:
      return "before-checkout";
    case FaultPoint::kAfterCheckout:
      return "after-checkout";
    case FaultPoint::kWorkProvided:
      return "work-provided";
    case FaultPoint::kSpecWritten:
      return "spec-written";
    case FaultPoint::kFenceOpened:
      return "fence-opened";
    case FaultPoint::kBeforeHandOver:
      return "before-hand-over";
    case FaultPoint::kAfterHandOver:
      return "after-hand-over";
    case FaultPoint::kBeforeFenceClaim:
      return "before-fence-claim";
    case FaultPoint::kAfterFenceClaim:
      return "after-fence-claim";
    case FaultPoint::kBeforeFenceClose:
      return "before-fence-close";
    case FaultPoint::kAfterFenceClose:
      return "after-fence-close";
    case FaultPoint::kBeforePauseFile:
      return "before-pause-file";
    case FaultPoint::kAfterPauseFile:
      return "after-pause-file";
    case FaultPoint::kBeforeRankSignal:
      return "before-rank-signal";
    case FaultPoint::kAfterRankSignal:
      return "after-rank-signal";
    case FaultPoint::kBeforeReap:
      return "before-reap";
    case FaultPoint::kAfterReap:
      return "after-reap";
    case FaultPoint::kBeforeRunRemoval:
      return "before-run-removal";
    case FaultPoint::kAfterRunRemoval:
      return "after-run-removal";
    case FaultPoint::kBeforeBlobs:
      return "before-blobs";
    case FaultPoint::kBlobsRenamed:
      return "blobs-renamed";
    case FaultPoint::kAfterBlobs:
      return "after-blobs";
    case FaultPoint::kBeforeManifest:
      return "before-manifest";
    case FaultPoint::kAfterManifest:
      return "after-manifest";
    case FaultPoint::kBeforeManifestRemoval:
      return "before-manifest-removal";
    case FaultPoint::kAfterManifestRemoval:
      return "after-manifest-removal";
    case FaultPoint::kBeforeBlobRemoval:
      return "before-blob-removal";
    case FaultPoint::kAfterBlobRemoval:
      return "after-blob-removal";
    case FaultPoint::kBeforeScanResult:
      return "before-scan-result";
    case FaultPoint::kAfterScanResult:
      return "after-scan-result";
    case FaultPoint::kBeforeReload:
      return "before-reload";
    case FaultPoint::kReloadInForce:
      return "reload-in-force";
    case FaultPoint::kAfterReload:
      return "after-reload";
    case FaultPoint::kStartLocked:
      return "start-locked";
    case FaultPoint::kStartLoaded:
      return "start-loaded";
    case FaultPoint::kStartTracked:
      return "start-tracked";
    case FaultPoint::kStartDelivered:
      return "start-delivered";
    case FaultPoint::kStartServing:
      return "start-serving";
  }
  return "";
}

std::optional<FaultPoint> FindPoint(std::string_view name) {
  for (int i = 0; i < kFaultPointCount; ++i) {
    const auto point = static_cast<FaultPoint>(i);
    if (Name(point) == name) return point;
  }
  return std::nullopt;
}

struct CrashAt {
  FaultPoint point = FaultPoint::kBeforeCommit;
  int64_t times = 0;
};

// Written once, before there is a second thread.
std::optional<CrashAt> crash_at;
std::atomic<int64_t> times_reached{0};

std::optional<int64_t> ParsePositive(std::string_view text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size() || number <= 0) return std::nullopt;
  return number;
}

absl::StatusOr<CrashAt> ParseCrashAt(std::string_view text) {
  const size_t colon = text.find(':');
  const auto point = FindPoint(text.substr(0, colon));
  const auto times = ParsePositive(colon == std::string_view::npos ? "" : text.substr(colon + 1));
  if (point && times) return CrashAt{*point, *times};
  return InvalidArgument("TP_CRASH_AT={} is not POINT:N with a point of `tpd-faults fault-points`", text);
}

void PrintFaultPoints() {
  for (int i = 0; i < kFaultPointCount; ++i) std::puts(std::string(Name(static_cast<FaultPoint>(i))).c_str());
}

}  // namespace

absl::Status ArmFaults(DaemonOptions& options) {
  if (const char* text = std::getenv("TP_CRASH_AT")) {
    TP_ASSIGN_OR_RETURN(crash_at, ParseCrashAt(text));
  }
  if (const char* text = std::getenv("TP_COLLECT_AFTER_MS")) {
    const auto after_ms = ParsePositive(text);
    if (!after_ms) return InvalidArgument("TP_COLLECT_AFTER_MS={} is not a number of milliseconds", text);
    options.collect_after = absl::Milliseconds(*after_ms);
  }
  return absl::OkStatus();
}

void AddFaultPointsCommand(CLI::App& app) {
  app.add_subcommand("fault-points", "Print the points at which TP_CRASH_AT=POINT:N ends this process")->callback([] {
    PrintFaultPoints();
    throw CLI::Success();
  });
}

}  // namespace tp::tpd

namespace tp {

void ReachFaultPoint(FaultPoint point) noexcept {
  using tpd::crash_at;
  if (!crash_at || crash_at->point != point || ++tpd::times_reached != crash_at->times) return;
  kill(getpid(), SIGKILL);
  pause();
}

}  // namespace tp
