#include "api/queue_view.h"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "api/convert.h"
#include "api/queue.h"
#include "api/request.h"
#include "api/run_reader.h"
#include "api/series_name.h"
#include "base/status.h"

namespace tp::api {
namespace {

constexpr std::string_view kListQueue = "/tp.v1.RunService/ListQueue";
constexpr int kShownAhead = 5;

// Without what the loop and the run's own row know.
v1::QueueEntry Sized(const WaitingStep& step, int position) {
  v1::QueueEntry entry;
  entry.set_position(position);
  entry.set_shape(step.wanted->shape);
  entry.set_cards(step.wanted->cards);
  for (const std::string& series : step.wanted->series) entry.add_series(series);
  entry.set_priority(step.priority);
  entry.set_effective_priority(step.effective_priority);
  *entry.mutable_submitted_at() = ToProto(step.submitted_at);
  return entry;
}

void AddNames(const core::RunWithSteps& run, const core::Step& step, v1::QueueEntry* entry) {
  entry->set_run(run.run.id());
  entry->set_owner(run.run.owner);
  entry->set_step(step.ref.step + 1);
  entry->set_step_name(step.spec.name);
}

void AddGate(const loop::LiveRun& live, int32_t step, bool named, v1::QueueEntry* entry) {
  const auto index = static_cast<size_t>(step);
  if (index >= live.gates.size() || live.gates[index].empty()) return;
  *entry->mutable_gate() = ToProto(live.gates[index].front());
  // It may speak of the quota and the runs of others.
  if (!named) entry->mutable_gate()->clear_sentence();
  entry->set_gate_count(static_cast<int32_t>(live.gates[index].size()));
}

v1::QueueEntry Entry(const Call& call, const WaitingStep& step, int position, const loop::LiveRun& live) {
  v1::QueueEntry entry = Sized(step, position);
  const bool named = auth::MayReadNameInQueue(call.caller, step.owner);
  if (named) AddNames(live.run, live.run.steps[static_cast<size_t>(step.ref.step)], &entry);
  AddGate(live, step.ref.step, named, &entry);
  return entry;
}

using LiveByRun = std::map<int64_t, loop::LiveRun>;

LiveByRun ByRun(std::vector<loop::LiveRun> runs) {
  LiveByRun by_run;
  for (loop::LiveRun& run : runs) {
    const int64_t n = run.run.run.n;
    by_run.emplace(n, std::move(run));
  }
  return by_run;
}

// The runs of the steps, each once; those that went meanwhile are left out.
absl::StatusOr<std::vector<core::RunWithSteps>> ReadRuns(store::Reader& reader, const std::vector<WaitingStep>& steps) {
  std::vector<core::RunWithSteps> runs;
  absl::flat_hash_set<int64_t> seen;
  for (const WaitingStep& step : steps) {
    if (!seen.insert(step.ref.run).second) continue;
    auto run = reader.GetRun(step.ref.run);
    if (absl::IsNotFound(run.status())) continue;
    if (!run.ok()) return run.status();
    runs.push_back(*std::move(run));
  }
  return runs;
}

// --- ListQueue ------------------------------------------------------------------------------------

std::string QueueIdentity(const v1::ListQueueRequest& request, const Call& call) {
  return fmt::format("{}\n{}\n{}", kListQueue, call.caller.user, request.series());
}

struct QueuePage {
  int64_t first = 0;  // how many are before it
  std::vector<WaitingStep> steps;
};

absl::StatusOr<QueuePage> ReadPage(Context& context, const Call& call, const v1::ListQueueRequest& request,
                                   const core::Shares& shares, v1::ListQueueResponse* response) {
  const std::shared_ptr<const core::Registry> registry = context.registry();
  TP_RETURN_IF_ERROR(CheckSeriesName(*registry, request.series()));
  TP_ASSIGN_OR_RETURN(const int limit, ParsePageSize(request.page_size()));
  const std::string identity = QueueIdentity(request, call);
  QueuePage page;
  if (!request.page_token().empty()) {
    TP_ASSIGN_OR_RETURN(page.first, context.page_tokens.Read(identity, request.page_token()));
  }
  TP_ASSIGN_OR_RETURN(std::vector<WaitingStep> queue,
                      ReadQueue(context.reader, *registry, context.facts.policy, shares, context.now()));
  if (!request.series().empty()) {
    std::erase_if(queue, [&](const WaitingStep& step) { return !Wants(step, request.series()); });
  }
  response->set_total_count(static_cast<int32_t>(queue.size()));
  for (const WaitingStep& step : queue) response->set_total_cards(response->total_cards() + step.wanted->cards);
  const auto size = static_cast<int64_t>(queue.size());
  const int64_t begin = std::min(page.first, size);
  const int64_t end = std::min(begin + limit, size);
  page.steps.assign(queue.begin() + begin, queue.begin() + end);
  if (end < size) response->set_next_page_token(context.page_tokens.Make(identity, end));
  return page;
}

void FillPage(const Call& call, const QueuePage& page, const LiveByRun& runs, v1::ListQueueResponse* response) {
  for (size_t i = 0; i < page.steps.size(); ++i) {
    const WaitingStep& step = page.steps[i];
    const auto live = runs.find(step.ref.run);
    if (live == runs.end()) continue;
    *response->add_entries() =
        Entry(call, step, static_cast<int>(page.first + static_cast<int64_t>(i) + 1), live->second);
  }
}

// --- ExplainRun -----------------------------------------------------------------------------------

// What is before one step, of those that want the same cards.
struct Place {
  int position = 0;
  int queue_length = 0;
  int ahead_count = 0;
  int64_t ahead_cards = 0;
  std::vector<std::pair<int, WaitingStep>> ahead;  // by position; the first of them
};

std::optional<Place> PlaceOf(const std::vector<WaitingStep>& queue, core::StepRef ref) {
  const auto own = std::find_if(queue.begin(), queue.end(), [ref](const WaitingStep& step) { return step.ref == ref; });
  if (own == queue.end()) return std::nullopt;
  Place place;
  for (auto step = queue.begin(); step != queue.end(); ++step) {
    if (step != own && !Compete(*own, *step)) continue;
    place.queue_length += 1;
    if (step == own) place.position = place.queue_length;
    if (step >= own || step->held) continue;
    place.ahead_count += 1;
    place.ahead_cards += step->wanted->cards;
    if (place.ahead_count <= kShownAhead) place.ahead.emplace_back(place.queue_length, *step);
  }
  return place;
}

absl::Status AddAhead(Context& context, const Call& call, const Place& place, v1::StepExplanation* to) {
  for (const auto& [position, step] : place.ahead) {
    v1::QueueEntry* entry = to->add_ahead();
    *entry = Sized(step, position);
    if (!auth::MayReadNameInQueue(call.caller, step.owner)) continue;
    const auto run = context.reader.GetRun(step.ref.run);
    if (run.ok()) {
      AddNames(*run, run->steps[static_cast<size_t>(step.ref.step)], entry);
    } else if (!absl::IsNotFound(run.status())) {
      return run.status();
    }
  }
  return absl::OkStatus();
}

absl::Status AddPlace(Context& context, const Call& call, const std::optional<Place>& place, v1::StepExplanation* to) {
  if (!place) return absl::OkStatus();
  to->set_position(place->position);
  to->set_queue_length(place->queue_length);
  to->set_ahead_count(place->ahead_count);
  to->set_ahead_cards(place->ahead_cards);
  return AddAhead(context, call, *place, to);
}

absl::Status Explain(Context& context, const Call& call, const core::Shares& shares, const loop::LiveRun& live,
                     v1::ExplainRunResponse* response) {
  *response->mutable_run() = View(context, call, live, Tasks::kAll);
  const auto& steps = live.run.steps;
  std::vector<WaitingStep> queue;
  if (std::any_of(steps.begin(), steps.end(),
                  [](const core::Step& step) { return step.state == core::JobState::kQueued; })) {
    TP_ASSIGN_OR_RETURN(queue,
                        ReadQueue(context.reader, *context.registry(), context.facts.policy, shares, context.now()));
  }
  for (const v1::Step& step : response->run().steps()) {
    v1::StepExplanation* to = response->add_steps();
    to->set_index(step.index());
    to->set_name(step.spec().name());
    to->set_state(step.state());
    to->set_reason(step.reason());
    *to->mutable_gates() = step.gates();
    const auto index = static_cast<size_t>(step.index() - 1);
    if (index < live.hints.size()) {
      for (const std::string& hint : live.hints[index]) to->add_hints(hint);
    }
    TP_RETURN_IF_ERROR(AddPlace(context, call, PlaceOf(queue, steps[index].ref), to));
  }
  return absl::OkStatus();
}

// The shares of users are the loop's to know; `then` is called on a thread of context.calls.
void WithShares(Context& context, const Done& failed, std::function<void(const core::Shares&)> then) {
  if (!context.facts.policy.fair_share) return then({});
  context.loop.Post(loop::StandingQuery(),
                    [&context, failed, then = std::move(then)](absl::StatusOr<loop::Standings> standings) {
                      if (!standings.ok()) return failed(standings.status());
                      context.calls.Post([then, shares = std::move(standings->shares)] { then(shares); });
                    });
}

void ListInOrder(Context& context, const Call& call, const v1::ListQueueRequest& request, const core::Shares& shares,
                 v1::ListQueueResponse* response, const Done& done) {
  auto page = ReadPage(context, call, request, shares, response);
  if (!page.ok()) return done(page.status());
  auto runs = ReadRuns(context.reader, page->steps);
  if (!runs.ok()) return done(runs.status());
  LoadLive(context, *std::move(runs),
           [call, response, done, page = *std::move(page)](absl::StatusOr<std::vector<loop::LiveRun>> live) {
             if (live.ok()) FillPage(call, page, ByRun(*std::move(live)), response);
             done(live.status());
           });
}

}  // namespace

void ListQueue(Context& context, const Call& call, const v1::ListQueueRequest& request, v1::ListQueueResponse* response,
               const Done& done) {
  WithShares(context, done, [&context, call, &request, response, done](const core::Shares& shares) {
    ListInOrder(context, call, request, shares, response, done);
  });
}

void ExplainRun(Context& context, const Call& call, const v1::ExplainRunRequest& request,
                v1::ExplainRunResponse* response, const Done& done) {
  auto stored = FindRun(context, call, request.run());
  if (!stored.ok()) return done(stored.status());
  WithShares(context, done, [&context, call, stored = *std::move(stored), response, done](const core::Shares& shares) {
    LoadLive(
        context, {stored},
        [&context, call, shares, response, done](const absl::StatusOr<std::vector<loop::LiveRun>>& runs) {
          done(runs.ok() ? Explain(context, call, shares, runs->front(), response) : runs.status());
        },
        Hints::kAsked);
  });
}

}  // namespace tp::api
