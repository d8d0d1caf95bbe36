#include "api/run_reader.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <utility>

#include "base/near_miss.h"
#include "base/printable.h"
#include "core/ids.h"
#include "core/revision.h"

namespace tp::api {
namespace {

constexpr int kRunsForHints = 200;
constexpr size_t kRunsPerQuery = 32;

// The caller's newest run that the selector may have meant: one of that name, else one of nearly that id.
std::optional<std::string> MeantRun(Context& context, const Call& call, std::string_view selector) {
  const auto page = context.reader.ListRuns({.owner = call.caller.user}, std::nullopt, kRunsForHints);
  if (!page.ok()) return std::nullopt;
  std::vector<std::string> ids;
  for (const core::RunWithSteps& run : page->runs) {
    if (run.run.slug == selector) return run.run.id();
    ids.push_back(run.run.id());
  }
  return NearMiss(selector, ids);
}

absl::Status RunNotFound(Context& context, const Call& call, std::string_view selector) {
  const auto meant = MeantRun(context, call, selector);
  return WithReason(NotFound("there is no run {}{}", Quoted(selector),
                             meant ? fmt::format("; did you mean {}?", *meant) : ": tp ls lists those there are"),
                    "RUN_NOT_FOUND");
}

absl::StatusOr<int64_t> LastRunOf(Context& context, const Call& call) {
  auto last = context.reader.LastRun(call.caller.user);
  if (!absl::IsNotFound(last.status())) return last;
  return WithReason(NotFound("@last is your newest run, and {} has none yet: tp submit makes one", call.caller.user),
                    "RUN_NOT_FOUND");
}

bool IsOver(const core::RunWithSteps& run) { return core::IsTerminal(core::RollUp(run.steps)); }

// A run that was live when it was read and that the loop no longer has is over by now.
absl::Status Merge(Context& context, std::vector<loop::LiveRun> answers, std::vector<loop::LiveRun>* runs) {
  std::map<int64_t, loop::LiveRun> by_n;
  for (loop::LiveRun& answer : answers) by_n[answer.run.run.n] = std::move(answer);
  for (loop::LiveRun& run : *runs) {
    if (IsOver(run.run)) continue;
    const auto found = by_n.find(run.run.run.n);
    if (found != by_n.end()) {
      run = std::move(found->second);
    } else {
      TP_ASSIGN_OR_RETURN(run.run, context.reader.GetRun(run.run.run.n));
    }
  }
  return absl::OkStatus();
}

// Runs on their way through the loop.
struct LiveLoad {
  std::vector<loop::LiveRun> runs;
  std::vector<int64_t> wanted;
  size_t asked = 0;  // of `wanted`
  std::vector<loop::LiveRun> answers;
  Hints hints = Hints::kLeftOut;
  RunsThen then;
};

// A few at a time: what others want of the loop gets its turn in between. The replies come on a thread of the
// loop's, which must not wait for the store.
void AskForMore(Context& context, const std::shared_ptr<LiveLoad>& load) {
  if (load->asked == load->wanted.size()) {
    context.calls.Post([&context, load] {
      const absl::Status status = Merge(context, std::move(load->answers), &load->runs);
      if (status.ok()) return load->then(std::move(load->runs));
      load->then(status);
    });
    return;
  }
  const size_t end = std::min(load->asked + kRunsPerQuery, load->wanted.size());
  loop::Query query;
  query.explain = load->hints == Hints::kAsked;
  query.runs.assign(load->wanted.begin() + static_cast<std::ptrdiff_t>(load->asked),
                    load->wanted.begin() + static_cast<std::ptrdiff_t>(end));
  load->asked = end;
  context.loop.Post(std::move(query), [&context, load](std::vector<loop::LiveRun> answers) {
    std::move(answers.begin(), answers.end(), std::back_inserter(load->answers));
    AskForMore(context, load);
  });
}

}  // namespace

absl::StatusOr<core::RunWithSteps> FindRun(Context& context, const Call& call, std::string_view selector) {
  auto parsed = core::ParseRunSelector(selector);
  if (!parsed.ok()) {
    // A word without a number, as people write it who think of the name alone.
    const auto meant = MeantRun(context, call, selector);
    return meant ? RunNotFound(context, call, selector) : WithField(parsed.status(), "run");
  }
  int64_t n = parsed->run;
  if (parsed->last) {
    TP_ASSIGN_OR_RETURN(n, LastRunOf(context, call));
  }
  auto run = context.reader.GetRun(n);
  if (absl::IsNotFound(run.status())) return RunNotFound(context, call, selector);
  if (!run.ok()) return run.status();
  if (parsed->slug && *parsed->slug != run->run.slug) {
    return WithReason(NotFound("there is no run {}: run {} is called {}", Quoted(selector), n, run->run.id()),
                      "RUN_NOT_FOUND");
  }
  return run;
}

void LoadLive(Context& context, std::vector<core::RunWithSteps> stored, RunsThen then, Hints hints) {
  auto load = std::make_shared<LiveLoad>();
  load->hints = hints;
  load->then = std::move(then);
  for (core::RunWithSteps& run : stored) {
    if (!IsOver(run)) load->wanted.push_back(run.run.n);
    load->runs.push_back({.run = std::move(run), .gates = {}, .shapes = {}});
  }
  if (load->wanted.empty()) return load->then(std::move(load->runs));
  AskForMore(context, load);
}

v1::Run View(Context& context, const Call& call, const loop::LiveRun& run, Tasks tasks) {
  const bool shown = auth::MayReadEnvironment(call.caller, run.run.run.owner);
  return ToProto(run, shown ? Environment::kShown : Environment::kLeftOut, context.now(), tasks);
}

absl::Status CheckMayReadContent(const Call& call, const core::Run& run) {
  if (!auth::MayReadContent(call.caller, run.owner)) {
    return Error(absl::StatusCode::kPermissionDenied, "{} belongs to {}: what it wrote is for its owner and operators",
                 run.id(), run.owner);
  }
  return run.removed_at ? WithReason(core::RemovedError(run), "RUN_REMOVED") : absl::OkStatus();
}

}  // namespace tp::api
