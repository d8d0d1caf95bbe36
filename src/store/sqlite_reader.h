// The reading side of a SqliteStore's file, in this or another process. Thread-safe: each call takes a
// read-only connection of its own from a pool and sees one committed state throughout.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "store/sqlite.h"
#include "store/store.h"

namespace tp::store {

class SqliteReader : public Reader {
 public:
  // `path` must exist in the present format: open the SqliteStore first.
  static absl::StatusOr<std::unique_ptr<SqliteReader>> Open(const std::string& path);

  absl::StatusOr<core::RunWithSteps> GetRun(int64_t n) override;
  absl::StatusOr<int64_t> LastRun(const std::string& owner) override;
  absl::StatusOr<RunPage> ListRuns(const RunFilter& filter, std::optional<int64_t> before, int limit) override;
  absl::StatusOr<std::vector<QueuedStepRow>> QueuedSteps() override;
  absl::StatusOr<std::vector<EventRow>> Events(int64_t run, int64_t after_revision, int limit) override;
  absl::StatusOr<std::vector<EventRow>> EventsAfter(int64_t revision, int limit) override;
  absl::StatusOr<std::vector<WordChange>> WordChangesAfter(int64_t revision, int limit) override;
  absl::StatusOr<int64_t> Revision() override;
  absl::StatusOr<Meta> ReadMeta() override;
  absl::StatusOr<std::optional<RequestRow>> FindRequest(const std::string& principal,
                                                        const std::string& request_id) override;
  absl::StatusOr<std::vector<std::string>> Owners() override;
  absl::StatusOr<std::vector<std::string>> NeededSnapshots() override;
  absl::StatusOr<std::vector<std::string>> SnapshotsOf(const std::string& owner, absl::Time committed_after) override;
  absl::StatusOr<std::optional<TokenRow>> FindToken(const std::string& id) override;
  absl::StatusOr<std::vector<UsageRow>> Usage(const UsageFilter& filter, UsageKey by) override;
  absl::StatusOr<std::vector<core::LedgerRow>> Ledger(const UsageFilter& filter, int64_t after_seq, int limit) override;
  absl::StatusOr<std::vector<MonthUseRow>> MonthUse() override;

  // Of all calls so far.
  QueryCost cost() const;

 private:
  explicit SqliteReader(std::string path) : path_(std::move(path)) {}

  absl::StatusOr<Database> Take();
  void GiveBack(Database database, const QueryCost& before);

  // Runs `read` in one read transaction.
  template <typename T>
  absl::StatusOr<T> Read(absl::FunctionRef<absl::StatusOr<T>(Database&)> read);

  const std::string path_;
  mutable std::mutex mutex_;
  std::vector<Database> idle_;
  QueryCost cost_;
};

}  // namespace tp::store
