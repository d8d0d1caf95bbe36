// Named places around commits and side effects, where a crash test ends the process. The shipped programs link a
// function that does nothing; tpd-faults links its own (src/tpd/faults.cc), which has the words. A new side effect
// at the edge gets its points here, and scripts/soak dies at them from then on.
#pragma once

#include <cstdint>

namespace tp {

// In pairs around what is done; single ones are between two things that belong together.
enum class FaultPoint : uint8_t {
  // What tpd keeps
  kBeforeCommit,  // of the loop
  kAfterCommit,
  kBeforeCorrectionCommit,  // one that holds a correction of the ledger
  kAfterCorrectionCommit,
  kBeforeLockWrite,
  kAfterLockWrite,
  kBeforeMigration,
  kAfterMigration,
  kBeforeBackup,  // of the database, before a migration
  kAfterBackup,
  kBeforeEpoch,  // a restored database begins a new one
  kAfterEpoch,
  kBeforeBallast,
  kAfterBallast,
  kBeforeSecretFile,  // token, page key, client file
  kAfterSecretFile,
  kBeforeTokenCommit,
  kAfterTokenCommit,
  // Calls of a backend, whichever it is
  kBeforeLaunch,
  kAfterLaunch,
  kBeforeFence,
  kAfterFence,
  kBeforeSignal,
  kAfterSignal,
  kBeforeRemove,
  kAfterRemove,
  kBeforeLook,
  kAfterLook,
  kAnswerPosted,  // to the loop, not yet committed
  // The durable pieces of an attempt
  kAttemptDirectoryMade,
  kBeforeCheckout,
  kAfterCheckout,
  kWorkProvided,
  kSpecWritten,
  kFenceOpened,
  kBeforeHandOver,  // ranks begin with the launcher
  kAfterHandOver,
  kBeforeFenceClaim,
  kAfterFenceClaim,
  kBeforeFenceClose,
  kAfterFenceClose,
  kBeforePauseFile,
  kAfterPauseFile,
  kBeforeRankSignal,
  kAfterRankSignal,
  kBeforeReap,
  kAfterReap,
  kBeforeRunRemoval,
  kAfterRunRemoval,
  // Snapshots
  kBeforeBlobs,
  kBlobsRenamed,
  kAfterBlobs,
  kBeforeManifest,
  kAfterManifest,
  kBeforeManifestRemoval,
  kAfterManifestRemoval,
  kBeforeBlobRemoval,
  kAfterBlobRemoval,
  // Housekeeping and configuration
  kBeforeScanResult,
  kAfterScanResult,
  kBeforeReload,
  kReloadInForce,  // the loop has not heard of it
  kAfterReload,
  // A start
  kStartLocked,
  kStartLoaded,
  kStartTracked,  // before the first look, and before the outbox is delivered again
  kStartDelivered,
  kStartServing,
};
inline constexpr int kFaultPointCount = static_cast<int>(FaultPoint::kStartServing) + 1;

// The process is at this point. Any thread.
void ReachFaultPoint(FaultPoint point) noexcept;

}  // namespace tp
