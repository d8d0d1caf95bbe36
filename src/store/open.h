// Opens what a deployment's tpd keeps: lock file first, then the database behind it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "base/fd.h"
#include "store/lock_file.h"
#include "store/sqlite_reader.h"
#include "store/sqlite_store.h"

namespace tp::store {

// Both exist. They may be one directory; the lock file belongs into storage.root (DESIGN 5.10), where a
// restored database does not take it along, the database onto a local disk.
struct StorePaths {
  std::string database_directory;  // tpd.db
  std::string lock_directory;      // tpd.lock
};

// The database is older than the lock file remembers: a backup was put in its place, or it was removed.
// Commits are refused until Store::BeginEpoch was called with these values.
struct Restored {
  int64_t epoch = 0;
  int64_t next_run = 0;
  bool operator==(const Restored&) const = default;
};

// Members are destroyed from the last to the first: the lock goes after everything that it protects.
struct OpenedStore {
  std::unique_ptr<LockFile> lock;
  UniqueFd directory_lock;  // of the database's directory: no other deployment shares it
  std::unique_ptr<SqliteStore> store;
  std::unique_ptr<SqliteReader> reader;
  std::optional<Restored> restored;
};

// FAILED_PRECONDITION where another tpd has the deployment or the database, where the database is on a
// network filesystem, or where it was written by a newer tpd.
absl::StatusOr<OpenedStore> OpenStore(const StorePaths& paths);

// Both in one directory.
absl::StatusOr<OpenedStore> OpenStore(const std::string& directory);

}  // namespace tp::store
