#include "notify/outbox.h"

#include <algorithm>

#include "auth/digest.h"
#include "base/overloaded.h"
#include "base/status.h"
#include "store/schema.h"

namespace tp::notify {
namespace {

using store::Columns;
using store::Query;
using store::Transaction;

constexpr size_t kInstanceBytes = 8;

const std::vector<store::Migration>& Migrations() {
  static const std::vector<store::Migration> migrations = {{1, R"sql(
    CREATE TABLE position (
      id INTEGER PRIMARY KEY CHECK (id = 1),
      instance TEXT NOT NULL,
      followed INTEGER NOT NULL CHECK (followed >= 0)
    ) STRICT;

    CREATE TABLE notification (
      seq INTEGER PRIMARY KEY AUTOINCREMENT,
      id TEXT NOT NULL,
      receiver TEXT NOT NULL,
      recipient TEXT NOT NULL,
      run INTEGER NOT NULL,
      body TEXT NOT NULL,
      created_at_us INTEGER NOT NULL,
      tries INTEGER NOT NULL,
      next_try_at_us INTEGER NOT NULL,
      UNIQUE (id, receiver, recipient)
    ) STRICT;

    CREATE INDEX notification_next ON notification (receiver, next_try_at_us, seq);
    CREATE INDEX notification_of_run ON notification (receiver, recipient, run, seq);

    CREATE TABLE tally (
      receiver TEXT PRIMARY KEY,
      delivered INTEGER NOT NULL,
      given_up INTEGER NOT NULL,
      last_error TEXT NOT NULL,
      last_failed_at_us INTEGER
    ) STRICT, WITHOUT ROWID;
  )sql"}};
  return migrations;
}

constexpr std::string_view kPendingColumns =
    "seq, id, receiver, recipient, run, body, created_at_us, tries, next_try_at_us";
constexpr int kMostStrays = 1000;

Pending ReadPending(Columns& columns) {
  Pending row;
  row.seq = columns.Int64();
  row.notification.id = columns.Text();
  row.notification.receiver = columns.Text();
  row.notification.recipient = columns.Text();
  row.notification.run = columns.Int64();
  row.notification.body = columns.Text();
  row.created_at = columns.Time();
  row.tries = columns.Int32();
  row.next_try_at = columns.Time();
  return row;
}

absl::Status Insert(store::Database& database, const Notification& notification, absl::Time now) {
  return Query(database,
               "INSERT INTO notification (id, receiver, recipient, run, body, created_at_us, tries, next_try_at_us) "
               "VALUES (?, ?, ?, ?, ?, ?, 0, ?) ON CONFLICT DO NOTHING")
      .Bind(notification.id, notification.receiver, notification.recipient, notification.run, notification.body, now,
            now)
      .Run();
}

absl::Status Delete(store::Database& database, int64_t seq) {
  return Query(database, "DELETE FROM notification WHERE seq = ?").Bind(seq).Run();
}

absl::Status Postpone(store::Database& database, const Pending& pending, absl::Time at) {
  return Query(database, "UPDATE notification SET tries = ?, next_try_at_us = ? WHERE seq = ?")
      .Bind(pending.tries + 1, at, pending.seq)
      .Run();
}

absl::Status Count(store::Database& database, const std::string& receiver, int delivered, int given_up) {
  return Query(database,
               "INSERT INTO tally VALUES (?, ?, ?, '', NULL) ON CONFLICT (receiver) DO UPDATE SET "
               "delivered = delivered + excluded.delivered, given_up = given_up + excluded.given_up")
      .Bind(receiver, delivered, given_up)
      .Run();
}

absl::Status NoteError(store::Database& database, const std::string& receiver, const std::string& why, absl::Time now) {
  return Query(database, "UPDATE tally SET last_error = ?, last_failed_at_us = ? WHERE receiver = ?")
      .Bind(why, now, receiver)
      .Run();
}

ReceiverStatus ReadTally(Columns& columns) {
  ReceiverStatus status;
  status.name = columns.Text();
  status.delivered = columns.Int64();
  status.given_up = columns.Int64();
  status.last_error = columns.Text();
  status.last_failed_at = columns.OptionalTime();
  status.waiting = columns.Int64();
  return status;
}

template <typename Row>
absl::StatusOr<std::vector<Row>> ReadRows(Query& query, Row (*read)(Columns&)) {
  std::vector<Row> rows;
  for (;;) {
    TP_ASSIGN_OR_RETURN(const bool found, query.Next());
    if (!found) return rows;
    Columns columns(query);
    rows.push_back(read(columns));
    TP_RETURN_IF_ERROR(columns.status());
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<Outbox>> Outbox::Open(const std::string& path, int64_t present) {
  TP_ASSIGN_OR_RETURN(store::Database database, store::Database::Open(path, store::Access::kReadWrite));
  TP_RETURN_IF_ERROR(store::Migrate(database, Migrations()));
  TP_RETURN_IF_ERROR(database.Execute("PRAGMA wal_autocheckpoint = 1000"));
  std::unique_ptr<Outbox> outbox(new Outbox(std::move(database)));
  TP_RETURN_IF_ERROR(outbox->ReadPosition(present));
  return outbox;
}

// Behind a main database that was replaced by an older one it goes on from that one's present.
absl::Status Outbox::ReadPosition(int64_t present) {
  const std::string fresh = auth::Hex(auth::RandomBytes(kInstanceBytes));
  TP_RETURN_IF_ERROR(
      Query(database_, "INSERT INTO position VALUES (1, ?, ?) ON CONFLICT DO NOTHING").Bind(fresh, present).Run());
  Query query(database_, "SELECT instance, followed FROM position");
  TP_ASSIGN_OR_RETURN(const bool found, query.Next());
  if (!found) return Error(absl::StatusCode::kDataLoss, "{}: its position is missing: move it away", database_.path());
  Columns columns(query);
  instance_ = columns.Text();
  followed_ = std::min(columns.Int64(), present);
  return columns.status();
}

absl::Status Outbox::Append(const std::vector<Notification>& notifications, int64_t followed, absl::Time now) {
  TP_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(database_, Transaction::Kind::kWrite));
  for (const Notification& notification : notifications) {
    TP_RETURN_IF_ERROR(Insert(database_, notification, now));
    TP_RETURN_IF_ERROR(Count(database_, notification.receiver, 0, 0));
  }
  TP_RETURN_IF_ERROR(Query(database_, "UPDATE position SET followed = ?").Bind(followed).Run());
  TP_RETURN_IF_ERROR(transaction.Commit());
  followed_ = followed;
  return absl::OkStatus();
}

// Only the oldest of a run and recipient: a run's changes arrive in their order.
absl::StatusOr<std::vector<Pending>> Outbox::Next(const std::string& receiver, size_t limit) {
  static const std::string sql = fmt::format(
      "SELECT {} FROM notification WHERE receiver = ? AND NOT EXISTS (SELECT 1 FROM notification AS older WHERE "
      "older.receiver = notification.receiver AND older.recipient = notification.recipient AND "
      "older.run = notification.run AND older.seq < notification.seq) ORDER BY next_try_at_us, seq LIMIT ?",
      kPendingColumns);
  Query query(database_, sql);
  query.Bind(receiver, static_cast<int64_t>(limit));
  return ReadRows(query, ReadPending);
}

absl::StatusOr<std::vector<Pending>> Outbox::OlderThan(absl::Time created_before) {
  static const std::string sql =
      fmt::format("SELECT {} FROM notification WHERE created_at_us < ? ORDER BY seq LIMIT ?", kPendingColumns);
  Query query(database_, sql);
  query.Bind(created_before, kMostStrays);
  return ReadRows(query, ReadPending);
}

absl::Status Outbox::Record(const Pending& pending, const Verdict& verdict, const TryResult& result, absl::Time now) {
  const std::string& receiver = pending.notification.receiver;
  TP_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(database_, Transaction::Kind::kWrite));
  const bool delivered = std::holds_alternative<Delivered>(verdict);
  const bool given_up = std::holds_alternative<GivenUp>(verdict);
  TP_RETURN_IF_ERROR(Count(database_, receiver, delivered ? 1 : 0, given_up ? 1 : 0));
  if (!delivered) TP_RETURN_IF_ERROR(NoteError(database_, receiver, result.why, now));
  TP_RETURN_IF_ERROR(
      std::visit(Overloaded{[&](const Delivered&) { return Delete(database_, pending.seq); },
                            [&](const TryAgain& again) { return Postpone(database_, pending, again.at); },
                            [&](const GivenUp&) { return Delete(database_, pending.seq); }},
                 verdict));
  return transaction.Commit();
}

absl::StatusOr<std::vector<ReceiverStatus>> Outbox::Tallies() {
  Query query(database_,
              "SELECT receiver, delivered, given_up, last_error, last_failed_at_us, (SELECT count(*) FROM notification "
              "WHERE notification.receiver = tally.receiver) FROM tally ORDER BY receiver");
  return ReadRows(query, ReadTally);
}

}  // namespace tp::notify
