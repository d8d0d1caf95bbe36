// tpd's state in one SQLite file, the writing side.
//
// A commit is durable when it returns: write-ahead log, synchronous FULL. The log is folded back into the
// file by the store itself after a commit, and never waits for a reader to do so. The file is never
// ANALYZEd: which index serves a query follows from the schema, not from what a table once held.
#pragma once

#include <memory>
#include <string>

#include "store/lock_file.h"
#include "store/sqlite.h"
#include "store/store.h"
#include "store/txn.h"

namespace tp::store {

class SqliteStore : public Store {
 public:
  // Opens `path`, makes or migrates it. `lock` may be null (tests, tools that hold no deployment) and
  // outlives the store otherwise.
  static absl::StatusOr<std::unique_ptr<SqliteStore>> Open(const std::string& path, LockFile* lock);

  SqliteStore(const SqliteStore&) = delete;
  SqliteStore& operator=(const SqliteStore&) = delete;

  absl::Status Commit(const Txn& txn) override;
  absl::StatusOr<Loaded> Load() override;
  // Revisions go on above all that the lock file knows of, so that nobody's revision is of the future.
  absl::Status BeginEpoch(int64_t epoch, int64_t next_run) override;

  const Meta& meta() const { return meta_; }
  Database& database() { return database_; }

 private:
  SqliteStore(Database database, LockFile* lock);

  absl::Status ReadMetaRow();
  absl::Status Write(const Txn& txn);
  absl::Status WriteChange(int64_t n, const RunChange& change);
  absl::StatusOr<std::vector<core::Step>> StepsAfter(int64_t n, const RunChange& change);
  absl::Status CommitMeta(const Meta& meta);
  void FoldLog();

  Database database_;
  LockFile* lock_;
  Meta meta_;
  int log_pages_ = 0;  // in the write-ahead log after the last commit
};

}  // namespace tp::store
