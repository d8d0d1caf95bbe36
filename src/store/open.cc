#include "store/open.h"

#include <algorithm>
#include <utility>

#include "base/file.h"
#include "base/status.h"
#include "store/disk.h"

namespace tp::store {
namespace {

absl::StatusOr<UniqueFd> LockDirectory(const std::string& path) {
  TP_ASSIGN_OR_RETURN(Directory directory, OpenDirectory(path));
  TP_ASSIGN_OR_RETURN(const bool ours, TakeLock(directory.fd.get(), path));
  if (ours) return std::move(directory.fd);
  return FailedPrecondition("the database in {} is open in the tpd of another deployment: name another directory",
                            path);
}

std::optional<Restored> RestoredOver(const LockFile& lock, const Meta& meta) {
  if (!lock.IsAheadOf(meta)) return std::nullopt;
  return Restored{std::max(lock.state().epoch, meta.epoch) + 1, std::max(lock.state().run_mark, meta.next_run)};
}

}  // namespace

absl::StatusOr<OpenedStore> OpenStore(const StorePaths& paths) {
  TP_RETURN_IF_ERROR(CheckFilesystem(paths.database_directory));
  OpenedStore opened;
  TP_ASSIGN_OR_RETURN(opened.lock, LockFile::Acquire(paths.lock_directory + "/tpd.lock"));
  TP_ASSIGN_OR_RETURN(opened.directory_lock, LockDirectory(paths.database_directory));
  const std::string database = paths.database_directory + "/tpd.db";
  TP_ASSIGN_OR_RETURN(opened.store, SqliteStore::Open(database, opened.lock.get()));
  TP_ASSIGN_OR_RETURN(opened.reader, SqliteReader::Open(database));
  const Meta& meta = opened.store->meta();
  opened.restored = RestoredOver(*opened.lock, meta);
  if (!opened.restored) {
    // A commit that the last process did not live to record, or a database that came before its lock file.
    TP_RETURN_IF_ERROR(opened.lock->ReserveRuns(meta.next_run));
    TP_RETURN_IF_ERROR(opened.lock->RecordDurably(meta));
  }
  return opened;
}

absl::StatusOr<OpenedStore> OpenStore(const std::string& directory) {
  return OpenStore(StorePaths{directory, directory});
}

}  // namespace tp::store
