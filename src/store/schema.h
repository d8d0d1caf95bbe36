// The version of a database file and the way from an older one to ours: forward only, one migration a
// version, each in a transaction of its own.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "store/sqlite.h"

namespace tp::store {

struct Migration {
  int version = 0;  // that the file has afterwards
  std::string_view sql;
};

// src/store/migrations/NNNN.sql, from 1 on without a gap.
const std::vector<Migration>& ProductMigrations();

// Brings the file to the last of `migrations`. An older file that holds anything is copied beside itself
// first, as `<path>.v<version>.backup`. FAILED_PRECONDITION, and the file untouched, where it is newer
// or not a database of tpd's.
absl::Status Migrate(Database& database, const std::vector<Migration>& migrations);

}  // namespace tp::store
