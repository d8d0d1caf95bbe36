#include "store/queued_steps.h"

#include <algorithm>
#include <map>
#include <string>

#include <fmt/format.h>

#include "base/status.h"
#include "core/gates.h"
#include "store/codec.h"
#include "store/sqlite_rows.h"
#include "store/waiting.h"

namespace tp::store {
namespace {

// The step it waits for is looked up only where there is one.
std::string Sql() {
  return fmt::format(
      "SELECT run.n, step.step, owner, priority, run.created_at_us, "
      "step.hold_owner OR step.hold_admin OR step.hold_shape <> '', "
      "json_object('v', json_extract(step.spec, '$.v'), 'value', json_extract(step.spec, '$.value.profiles')), "
      "json_extract(step.spec, '$.value.after.when'), before.state, "
      "CASE WHEN run.array_limit > 0 THEN "
      "max(0, run.array_limit - (SELECT count(*) FROM attempt WHERE attempt.run = run.n)) ELSE -1 END "
      "FROM run INDEXED BY run_unfinished JOIN step ON step.run = run.n "
      "LEFT JOIN step AS before ON before.run = run.n AND before.step = json_extract(step.spec, '$.value.after.step') "
      "WHERE {} AND step.state = 'QUEUED' AND (json_extract(step.spec, '$.value.after') IS NOT NULL OR "
      "run.after_runs = '{}' OR NOT EXISTS "
      "(SELECT 1 FROM json_each(run.after_runs, '$.value') WHERE json_extract(value, '$.outcome') IS NULL))",
      kUnfinished, Encode(std::vector<core::RunDependency>()));
}

// Lists of flags by their text: a long queue asks for few different ones.
class KnownProfiles {
 public:
  absl::StatusOr<std::vector<std::string>> Of(const std::string& json) {
    const auto known = known_.find(json);
    if (known != known_.end()) return known->second;
    TP_ASSIGN_OR_RETURN(std::vector<std::string> profiles, Decode<std::vector<std::string>>(json));
    return known_.emplace(json, std::move(profiles)).first->second;
  }

 private:
  std::map<std::string, std::vector<std::string>> known_;
};

}  // namespace

absl::StatusOr<std::vector<QueuedStepRow>> SelectQueuedSteps(Database& database) {
  static const std::string sql = Sql();
  Query query(database, sql);
  KnownProfiles profiles;
  std::vector<QueuedStepRow> rows;
  std::map<int64_t, int64_t> rooms;
  for (;;) {
    TP_ASSIGN_OR_RETURN(const bool found, query.Next());
    if (!found) break;
    Columns columns(query);
    QueuedStepRow row;
    row.ref.run = columns.Int64();
    row.ref.step = columns.Int32();
    row.owner = columns.Text();
    row.priority = columns.Int32();
    row.submitted_at = columns.Time();
    row.held = columns.Bool();
    const std::string flags = columns.Text();
    const auto when = columns.OptionalEnum<core::AfterWhen>();
    const auto before = columns.OptionalEnum<core::JobState>();
    if (const int64_t room = columns.Int64(); room >= 0) rooms[row.ref.run] = room;
    TP_RETURN_IF_ERROR(columns.status());
    if (when && before && core::Dependency(*when, *before) != core::DependencyState::kMet) continue;
    TP_ASSIGN_OR_RETURN(row.profiles, profiles.Of(flags));
    rows.push_back(std::move(row));
  }
  std::sort(rows.begin(), rows.end(), [](const QueuedStepRow& a, const QueuedStepRow& b) { return a.ref < b.ref; });
  LeaveTurns(rows, rooms);
  return rows;
}

}  // namespace tp::store
