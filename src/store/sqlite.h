// A thin owner of SQLite's C API: one connection with its prepared statements, and one running query.
// Every status names the database file and SQLite's own words.
//
// Threads: a connection and everything made from it belong to one thread at a time.
// Errors: RESOURCE_EXHAUSTED disk full, nothing of the statement was kept; UNAVAILABLE another
// connection holds the lock; DATA_LOSS the file is damaged; else INTERNAL.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "store/words.h"

struct sqlite3;
struct sqlite3_stmt;

namespace tp::store {

// How long a statement waits for another connection's lock.
inline constexpr int kBusyTimeoutMs = 5000;

enum class Access { kReadWrite, kReadOnly };

// What the queries of a connection have cost, independent of the machine.
struct QueryCost {
  int64_t statements = 0;
  int64_t steps = 0;  // of SQLite's virtual machine: follows the rows that were visited
};

class Database {
 public:
  // kReadWrite makes the file (mode 0600) where it does not exist; its directory must.
  static absl::StatusOr<Database> Open(const std::string& path, Access access);

  Database(Database&&) noexcept;
  Database& operator=(Database&&) noexcept;
  ~Database();

  // Statements without parameters and results.
  absl::Status Execute(const std::string& sql);

  // One number, e.g. of `PRAGMA user_version`.
  absl::StatusOr<int64_t> Number(std::string_view sql);

  // The status of the call that just failed; `doing` completes "cannot ...".
  absl::Status Failure(std::string_view doing) const;

  const std::string& path() const { return path_; }
  sqlite3* handle() const { return handle_.get(); }
  const QueryCost& cost() const { return cost_; }

 private:
  friend class Query;

  struct CloseDatabase {
    void operator()(sqlite3* handle) const;
  };
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };
  struct Cached {
    std::unique_ptr<sqlite3_stmt, Finalize> statement;
    bool running = false;
  };

  Database(std::string path, sqlite3* handle);
  absl::Status Configure(Access access);
  absl::StatusOr<Cached*> Prepare(std::string_view sql);

  std::string path_;
  std::unique_ptr<sqlite3, CloseDatabase> handle_;
  std::map<std::string, Cached, std::less<>> cache_;  // after handle_: finalized before it closes
  QueryCost cost_;
};

// One use of a statement: bind, then Run or Next until false. The statement goes back to the cache at
// the end of its life; of two queries with the same text only one can run at a time.
class Query {
 public:
  Query(Database& database, std::string_view sql);
  ~Query();
  Query(const Query&) = delete;
  Query& operator=(const Query&) = delete;

  // Values take the parameters in order, from the first on; an empty optional is NULL, a time its
  // microseconds, an enumeration its word. Values are copied.
  template <typename... Values>
  Query& Bind(const Values&... values) {
    (BindNext(values), ...);
    return *this;
  }

  // True while there is a row.
  absl::StatusOr<bool> Next();
  absl::Status Run();

 private:
  friend class Columns;

  void BindNext(int64_t value);
  void BindNext(int32_t value) { BindNext(static_cast<int64_t>(value)); }
  void BindNext(bool value) { BindNext(static_cast<int64_t>(value)); }
  void BindNext(std::string_view value);
  void BindNext(const std::string& value) { BindNext(std::string_view(value)); }
  void BindNext(absl::Time value);
  void BindNext(absl::Duration value);
  template <typename E>
  requires std::is_enum_v<E>
  void BindNext(E value) { BindNext(Word(value)); }
  template <typename T>
  void BindNext(const std::optional<T>& value) {
    if (value) {
      BindNext(*value);
    } else {
      BindNull();
    }
  }
  void BindNull();
  void CheckBound(int code);

  Database& database_;
  Database::Cached* cached_ = nullptr;
  sqlite3_stmt* statement_ = nullptr;
  absl::Status status_;
  int bound_ = 0;
};

// The columns of a query's current row, taken in order. A word that is not one of its enumeration makes
// the status DATA_LOSS.
class Columns {
 public:
  explicit Columns(const Query& query);

  int64_t Int64();
  int32_t Int32();
  bool Bool() { return Int64() != 0; }
  std::string Text();
  absl::Time Time();
  absl::Duration Duration();
  std::optional<absl::Time> OptionalTime();
  std::optional<std::string> OptionalText();

  template <typename E>
  E Enum() {
    const std::string word = Text();
    const std::optional<E> value = FromWord<E>(word);
    if (!value) Damaged("'" + word + "' is not a known word");
    return value.value_or(E{});
  }

  template <typename E>
  std::optional<E> OptionalEnum() {
    if (!IsNull()) return Enum<E>();
    ++column_;
    return std::nullopt;
  }

  // For what a column's text turns out to be: the first fault counts.
  void Damaged(std::string_view why);
  const absl::Status& status() const { return status_; }

 private:
  bool IsNull() const;
  std::string RowName() const;

  const Query& query_;
  int column_ = 0;
  absl::Status status_;
};

// A transaction that is rolled back unless it was committed.
class Transaction {
 public:
  enum class Kind { kRead, kWrite };
  static absl::StatusOr<Transaction> Begin(Database& database, Kind kind);

  Transaction(Transaction&& other) noexcept;
  Transaction& operator=(Transaction&&) = delete;
  ~Transaction();

  absl::Status Commit();

 private:
  explicit Transaction(Database& database) : database_(&database) {}

  Database* database_;  // null: over
};

}  // namespace tp::store
