// The lock file of a deployment (DESIGN 5.10): one tpd at a time, and a memory of how far its database had
// come that does not live in the database, so that a restored backup is told from the newest state.
//
// Held by flock() for the life of the object; the kernel lets go of it however the process ends. The file
// is never replaced, only overwritten in place, in two slots of one disk sector each, in turn: whichever
// write was cut short, the other slot still reads.
//
// What is written when:
// - The mark of run numbers, ahead and with fsync: before a commit hands out a number at or above it, it
//   is raised by a block of kRunBlock. A number that anybody has seen is below the mark, whatever is lost.
// - Epoch and revision after every commit, without fsync: that survives the death of the process. fsync
//   follows every kRevisionsPerSync revisions and at close. As it is written after the commit is durable,
//   the file is never ahead of an unharmed database, power cuts included; a database behind it has been
//   restored or has lost commits. What is not noticed: a backup from within the last kRevisionsPerSync
//   revisions that is restored after a power cut took the file's newest slot.
// - A new epoch, with fsync, after the database has it; a crash in between finds the same restored
//   database again.
//
// Threads: owned by the writer's thread after Acquire.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/fd.h"
#include "store/rows.h"

namespace tp::store {

inline constexpr int64_t kRunBlock = 1000;
inline constexpr int64_t kRevisionsPerSync = 1000;

struct LockState {
  int64_t epoch = 0;     // 0: the file is new
  int64_t revision = 0;  // of that epoch
  int64_t run_mark = 1;  // every run number handed out is below
  bool operator==(const LockState&) const = default;
};

class LockFile {
 public:
  // FAILED_PRECONDITION, with the pid of the other process, where the lock is held; DATA_LOSS where no
  // slot of the file reads.
  static absl::StatusOr<std::unique_ptr<LockFile>> Acquire(const std::string& path);

  LockFile(const LockFile&) = delete;
  LockFile& operator=(const LockFile&) = delete;
  ~LockFile();

  const LockState& state() const { return state_; }

  // Whether the database with these counters is not the newest one.
  bool IsAheadOf(const Meta& meta) const;

  // Before the commit that brings the database to `next_run`.
  absl::Status ReserveRuns(int64_t next_run);

  // After the commit.
  absl::Status Record(const Meta& committed);

  // Record, on storage when it returns OK.
  absl::Status RecordDurably(const Meta& committed);

 private:
  LockFile(std::string path, UniqueFd fd) : path_(std::move(path)), fd_(std::move(fd)) {}

  absl::Status Read();
  absl::Status Write();
  absl::Status Sync();

  std::string path_;
  UniqueFd fd_;
  LockState state_;
  int64_t writes_ = 0;           // ever, over all processes: orders the slots
  int64_t synced_revision_ = 0;  // what fsync last covered
};

}  // namespace tp::store
