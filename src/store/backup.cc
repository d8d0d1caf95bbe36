#include "store/backup.h"

#include <sqlite3.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "base/fault_point.h"
#include "base/file.h"
#include "base/status.h"
#include "store/sqlite.h"

namespace tp::store {
namespace {

std::string FolderOf(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

absl::Status CopyPages(Database& from, Database& to) {
  std::unique_ptr<sqlite3_backup, int (*)(sqlite3_backup*)> backup(
      sqlite3_backup_init(to.handle(), "main", from.handle(), "main"), sqlite3_backup_finish);
  if (!backup) return to.Failure("begin a backup to");
  constexpr int kAllPages = -1;
  const int code = sqlite3_backup_step(backup.get(), kAllPages);
  backup.reset();
  return code == SQLITE_DONE ? absl::OkStatus() : to.Failure("write a backup to");
}

absl::Status CopyTo(const std::string& from, const std::string& temporary) {
  TP_ASSIGN_OR_RETURN(Database source, Database::Open(from, Access::kReadOnly));
  TP_ASSIGN_OR_RETURN(Database target, Database::Open(temporary, Access::kReadWrite));
  TP_RETURN_IF_ERROR(CopyPages(source, target));
  // Out of the write-ahead mode, so that the copy is one file, complete and synced by itself.
  return target.Execute("PRAGMA journal_mode = DELETE");
}

}  // namespace

absl::Status BackUp(const std::string& from, const std::string& to) {
  ReachFaultPoint(FaultPoint::kBeforeBackup);
  const std::string temporary = to + ".tmp";
  unlink(temporary.c_str());
  if (absl::Status status = CopyTo(from, temporary); !status.ok()) {
    unlink(temporary.c_str());
    return status;
  }
  if (std::rename(temporary.c_str(), to.c_str()) != 0) return ErrnoStatus(errno, "rename to", to);
  TP_ASSIGN_OR_RETURN(const Directory directory, OpenDirectory(FolderOf(to)));
  TP_RETURN_IF_ERROR(SyncDirectory(directory));
  ReachFaultPoint(FaultPoint::kAfterBackup);
  return absl::OkStatus();
}

}  // namespace tp::store
