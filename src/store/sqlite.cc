#include "store/sqlite.h"

#include <fcntl.h>
#include <sqlite3.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "base/fd.h"
#include "base/file.h"
#include "base/printable.h"
#include "base/status.h"
#include "store/micros.h"

namespace tp::store {
namespace {

// SQLite would make the file readable for others, and its WAL with it.
absl::Status MakePrivateFile(const std::string& path) {
  const UniqueFd fd(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!fd.valid()) return ErrnoStatus(errno, "open", path);
  if (fsync(fd.get()) != 0) return ErrnoStatus(errno, "fsync", path);
  return absl::OkStatus();
}

// A failed fsync is not among these: what it left on the disk is not known.
bool IsDiskFull(int extended_code, int system_errno) {
  if ((extended_code & 0xff) == SQLITE_FULL) return true;
  const bool write = extended_code == SQLITE_IOERR_WRITE || extended_code == SQLITE_IOERR_SHMSIZE ||
                     extended_code == SQLITE_IOERR_TRUNCATE;
  return write && (system_errno == ENOSPC || system_errno == EDQUOT || system_errno == EFBIG);
}

absl::StatusCode CodeOf(int extended_code, int system_errno) {
  if (IsDiskFull(extended_code, system_errno)) return absl::StatusCode::kResourceExhausted;
  switch (extended_code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return absl::StatusCode::kUnavailable;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return absl::StatusCode::kDataLoss;
    default:
      return absl::StatusCode::kInternal;
  }
}

std::string_view Advice(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kResourceExhausted:
      return ": the disk or its quota is full, free some space";
    case absl::StatusCode::kUnavailable:
      return ": another program holds its lock";
    case absl::StatusCode::kDataLoss:
      return ": restore it from a backup";
    default:
      return "";
  }
}

}  // namespace

void Database::CloseDatabase::operator()(sqlite3* handle) const { sqlite3_close_v2(handle); }
void Database::Finalize::operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }

Database::Database(std::string path, sqlite3* handle) : path_(std::move(path)), handle_(handle) {}
Database::Database(Database&&) noexcept = default;
Database& Database::operator=(Database&&) noexcept = default;
Database::~Database() = default;

absl::StatusOr<Database> Database::Open(const std::string& path, Access access) {
  if (access == Access::kReadWrite) TP_RETURN_IF_ERROR(MakePrivateFile(path));
  const int flags = access == Access::kReadWrite ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY;
  sqlite3* handle = nullptr;
  const int code = sqlite3_open_v2(path.c_str(), &handle, flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, nullptr);
  Database database(path, handle);
  if (handle == nullptr) return Internal("cannot open {}: out of memory", path);
  if (code != SQLITE_OK) return database.Failure("open");
  TP_RETURN_IF_ERROR(database.Configure(access));
  return database;
}

absl::Status Database::Configure(Access access) {
  sqlite3_busy_timeout(handle_.get(), kBusyTimeoutMs);
  TP_RETURN_IF_ERROR(
      Execute("PRAGMA foreign_keys = ON; PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON;"
              "PRAGMA temp_store = MEMORY"));
  if (access == Access::kReadOnly) return Execute("PRAGMA query_only = ON");
  return Execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0");
}

absl::Status Database::Failure(std::string_view doing) const {
  // SQLite does not keep the errno of a failed COMMIT, but nothing after the failed call changes it.
  const int last_errno = errno;
  const int extended_code = sqlite3_extended_errcode(handle_.get());
  const int kept_errno = sqlite3_system_errno(handle_.get());
  const int system_errno = kept_errno != 0 ? kept_errno : last_errno;
  const absl::StatusCode code = CodeOf(extended_code, system_errno);
  const std::string cause =
      (extended_code & 0xff) == SQLITE_IOERR ? ", " + std::generic_category().message(system_errno) : std::string();
  return Error(code, "cannot {} {}: {} (SQLite code {}){}{}", doing, path_, sqlite3_errmsg(handle_.get()),
               extended_code, cause, Advice(code));
}

absl::Status Database::Execute(const std::string& sql) {
  ++cost_.statements;
  errno = 0;
  if (sqlite3_exec(handle_.get(), sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK) return absl::OkStatus();
  return Failure("change");
}

absl::StatusOr<int64_t> Database::Number(std::string_view sql) {
  Query query(*this, sql);
  TP_ASSIGN_OR_RETURN(const bool found, query.Next());
  if (!found) return Internal("{}: '{}' has no result", path_, sql);
  return Columns(query).Int64();
}

absl::StatusOr<Database::Cached*> Database::Prepare(std::string_view sql) {
  auto found = cache_.find(sql);
  if (found == cache_.end()) {
    sqlite3_stmt* statement = nullptr;
    const int code = sqlite3_prepare_v3(handle_.get(), sql.data(), static_cast<int>(sql.size()),
                                        SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
    if (code != SQLITE_OK) return Failure("prepare a statement for");
    found = cache_.emplace(std::string(sql), Cached{std::unique_ptr<sqlite3_stmt, Finalize>(statement)}).first;
  }
  if (found->second.running) return Internal("{}: '{}' runs already", path_, sql);
  return &found->second;
}

// --- Query ----------------------------------------------------------------------------------------

Query::Query(Database& database, std::string_view sql) : database_(database) {
  absl::StatusOr<Database::Cached*> cached = database.Prepare(sql);
  status_ = cached.status();
  if (!cached.ok()) return;
  cached_ = *cached;
  cached_->running = true;
  statement_ = cached_->statement.get();
}

Query::~Query() {
  if (cached_ == nullptr) return;
  database_.cost_.statements += 1;
  database_.cost_.steps += sqlite3_stmt_status(statement_, SQLITE_STMTSTATUS_VM_STEP, 1);
  sqlite3_reset(statement_);
  sqlite3_clear_bindings(statement_);
  cached_->running = false;
}

void Query::CheckBound(int code) {
  if (code != SQLITE_OK && status_.ok()) status_ = database_.Failure("bind a value for");
}

void Query::BindNext(int64_t value) {
  if (statement_ != nullptr) CheckBound(sqlite3_bind_int64(statement_, ++bound_, value));
}

void Query::BindNext(std::string_view value) {
  if (statement_ == nullptr) return;
  // A null pointer would bind NULL.
  const char* bytes = value.empty() ? "" : value.data();
  CheckBound(sqlite3_bind_text64(statement_, ++bound_, bytes, value.size(), SQLITE_TRANSIENT, SQLITE_UTF8));
}

void Query::BindNext(absl::Time value) { BindNext(ToMicros(value)); }
void Query::BindNext(absl::Duration value) { BindNext(ToMicros(value)); }

void Query::BindNull() {
  if (statement_ != nullptr) CheckBound(sqlite3_bind_null(statement_, ++bound_));
}

absl::StatusOr<bool> Query::Next() {
  TP_RETURN_IF_ERROR(status_);
  errno = 0;
  switch (sqlite3_step(statement_)) {
    case SQLITE_ROW:
      return true;
    case SQLITE_DONE:
      return false;
    default:
      status_ = database_.Failure("read or write");
      return status_;
  }
}

absl::Status Query::Run() { return Next().status(); }

// --- Columns --------------------------------------------------------------------------------------

Columns::Columns(const Query& query) : query_(query) {}

bool Columns::IsNull() const { return sqlite3_column_type(query_.statement_, column_) == SQLITE_NULL; }

void Columns::Damaged(std::string_view why) {
  if (!status_.ok()) return;
  // The column was taken already.
  status_ = Error(absl::StatusCode::kDataLoss, "{}: {} of the row with {} is damaged: {}", query_.database_.path(),
                  sqlite3_column_name(query_.statement_, column_ - 1), RowName(), why);
}

// By its first column, and by a number that follows it.
std::string Columns::RowName() const {
  sqlite3_stmt* row = query_.statement_;
  const auto cell = [row](int column) {
    const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(row, column));
    return fmt::format("{} {}", sqlite3_column_name(row, column), Quoted(text == nullptr ? "" : text));
  };
  const bool pair = sqlite3_column_count(row) > 1 && sqlite3_column_type(row, 1) == SQLITE_INTEGER;
  return pair ? fmt::format("{} and {}", cell(0), cell(1)) : cell(0);
}

int64_t Columns::Int64() { return sqlite3_column_int64(query_.statement_, column_++); }

int32_t Columns::Int32() {
  const int64_t value = Int64();
  if (!std::in_range<int32_t>(value)) Damaged(fmt::format("{} is out of range", value));
  return static_cast<int32_t>(value);
}

std::string Columns::Text() {
  // The bytes first: their number is asked for in the encoding that this call settles.
  const void* bytes = sqlite3_column_text(query_.statement_, column_);
  const auto size = static_cast<size_t>(sqlite3_column_bytes(query_.statement_, column_));
  ++column_;
  return bytes == nullptr ? std::string() : std::string(static_cast<const char*>(bytes), size);
}

absl::Time Columns::Time() { return TimeOf(Int64()); }
absl::Duration Columns::Duration() { return DurationOf(Int64()); }

std::optional<absl::Time> Columns::OptionalTime() {
  if (!IsNull()) return Time();
  ++column_;
  return std::nullopt;
}

std::optional<std::string> Columns::OptionalText() {
  if (!IsNull()) return Text();
  ++column_;
  return std::nullopt;
}

// --- Transaction ----------------------------------------------------------------------------------

absl::StatusOr<Transaction> Transaction::Begin(Database& database, Kind kind) {
  Query begin(database, kind == Kind::kWrite ? "BEGIN IMMEDIATE" : "BEGIN");
  TP_RETURN_IF_ERROR(begin.Run());
  return Transaction(database);
}

Transaction::Transaction(Transaction&& other) noexcept : database_(std::exchange(other.database_, nullptr)) {}

Transaction::~Transaction() {
  // SQLite rolls back by itself after some errors; then there is nothing left to do.
  if (database_ == nullptr || sqlite3_get_autocommit(database_->handle()) != 0) return;
  Query(*database_, "ROLLBACK").Run().IgnoreError();
}

absl::Status Transaction::Commit() {
  TP_RETURN_IF_ERROR(Query(*database_, "COMMIT").Run());
  database_ = nullptr;
  return absl::OkStatus();
}

}  // namespace tp::store
