#include "store/schema.h"

#include "base/fault_point.h"
#include "base/status.h"
#include "store/backup.h"

namespace tp::store {
namespace {

constexpr int64_t kApplicationId = 0x74706462;  // "tpdb"

// Nothing where the file is empty.
absl::StatusOr<int64_t> CheckedVersion(Database& database) {
  TP_ASSIGN_OR_RETURN(const int64_t application, database.Number("PRAGMA application_id"));
  TP_ASSIGN_OR_RETURN(const int64_t objects, database.Number("SELECT count(*) FROM sqlite_schema"));
  if (application != kApplicationId && (application != 0 || objects > 0)) {
    return FailedPrecondition("{} is an SQLite file of another program: name another data directory", database.path());
  }
  return database.Number("PRAGMA user_version");
}

absl::Status CheckForeignKeys(Database& database) {
  Query query(database, "PRAGMA foreign_key_check");
  TP_ASSIGN_OR_RETURN(const bool broken, query.Next());
  if (!broken) return absl::OkStatus();
  return Error(absl::StatusCode::kDataLoss, "{}: a row of table {} refers to one that is not there: restore a backup",
               database.path(), Columns(query).Text());
}

absl::Status Apply(Database& database, const Migration& migration) {
  TP_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(database, Transaction::Kind::kWrite));
  TP_RETURN_IF_ERROR(database.Execute(std::string(migration.sql)));
  TP_RETURN_IF_ERROR(database.Execute(
      fmt::format("PRAGMA application_id = {}; PRAGMA user_version = {}", kApplicationId, migration.version)));
  TP_RETURN_IF_ERROR(CheckForeignKeys(database));
  return transaction.Commit();
}

absl::Status ApplyNewer(Database& database, const std::vector<Migration>& migrations, int64_t version) {
  for (const Migration& migration : migrations) {
    if (migration.version <= version) continue;
    ReachFaultPoint(FaultPoint::kBeforeMigration);
    TP_RETURN_IF_ERROR(Apply(database, migration));
    ReachFaultPoint(FaultPoint::kAfterMigration);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Migrate(Database& database, const std::vector<Migration>& migrations) {
  TP_ASSIGN_OR_RETURN(const int64_t version, CheckedVersion(database));
  const int64_t newest = migrations.back().version;
  if (version == newest) return absl::OkStatus();
  if (version > newest) {
    return FailedPrecondition(
        "{} was written by a newer tpd (format {}, this one knows up to {}): upgrade tpd, or "
        "restore the backup that the newer one made beside it",
        database.path(), version, newest);
  }
  if (version > 0) {
    TP_RETURN_IF_ERROR(BackUp(database.path(), fmt::format("{}.v{}.backup", database.path(), version)));
  }
  // Tables are rebuilt under their references; they are checked at the end of each migration.
  TP_RETURN_IF_ERROR(database.Execute("PRAGMA foreign_keys = OFF"));
  absl::Status status = ApplyNewer(database, migrations, version);
  TP_RETURN_IF_ERROR(database.Execute("PRAGMA foreign_keys = ON"));
  return status;
}

}  // namespace tp::store
