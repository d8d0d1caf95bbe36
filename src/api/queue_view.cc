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
#include "api/estimate_view.h"
#include "api/queue.h"
#include "api/queue_cache.h"
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

v1::QueueEntry Entry(const Call& call, const WaitingStep& waiting, int position, const loop::LiveRun& live,
                     const Forecast* forecast) {
  v1::QueueEntry entry = Sized(waiting, position);
  const bool named = auth::MayReadNameInQueue(call.caller, waiting.owner);
  const core::Step& step = live.run.steps[static_cast<size_t>(waiting.ref.step)];
  if (named) AddNames(live.run, step, &entry);
  AddGate(live, waiting.ref.step, named, &entry);
  if (step.state == core::JobState::kQueued) *entry.mutable_estimate() = EstimateOf(call, forecast, live.run, step);
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
  TP_ASSIGN_OR_RETURN(const std::shared_ptr<const QueueInOrder> queue, context.queue.Read(context, shares));
  int64_t size = 0;
  int64_t cards = 0;
  for (const WaitingStep& step : queue->steps) {
    if (!request.series().empty() && !Wants(step, request.series())) continue;
    if (size >= page.first && size < page.first + limit) page.steps.push_back(step);
    ++size;
    cards += step.wanted->cards;
  }
  response->set_total_count(static_cast<int32_t>(size));
  response->set_total_cards(cards);
  if (page.first + limit < size) response->set_next_page_token(context.page_tokens.Make(identity, page.first + limit));
  return page;
}

void FillPage(const Call& call, const QueuePage& page, const LiveByRun& runs, const Forecast* forecast,
              v1::ListQueueResponse* response) {
  for (size_t i = 0; i < page.steps.size(); ++i) {
    const WaitingStep& step = page.steps[i];
    const auto live = runs.find(step.ref.run);
    if (live == runs.end()) continue;
    *response->add_entries() =
        Entry(call, step, static_cast<int>(page.first + static_cast<int64_t>(i) + 1), live->second, forecast);
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
                     const Forecast* forecast, v1::ExplainRunResponse* response) {
  *response->mutable_run() = View(context, call, live, Tasks::kAll);
  AddEstimates(context, call, forecast, live.run, response->mutable_run());
  const auto& steps = live.run.steps;
  auto queue = std::make_shared<const QueueInOrder>();
  if (std::any_of(steps.begin(), steps.end(),
                  [](const core::Step& step) { return step.state == core::JobState::kQueued; })) {
    TP_ASSIGN_OR_RETURN(queue, context.queue.Read(context, shares));
  }
  for (const v1::Step& step : response->run().steps()) {
    v1::StepExplanation* to = response->add_steps();
    to->set_index(step.index());
    to->set_name(step.spec().name());
    to->set_state(step.state());
    to->set_reason(step.reason());
    *to->mutable_gates() = step.gates();
    if (step.has_estimate()) *to->mutable_estimate() = step.estimate();
    const auto index = static_cast<size_t>(step.index() - 1);
    if (index < live.hints.size()) {
      for (const std::string& hint : live.hints[index]) to->add_hints(hint);
    }
    TP_RETURN_IF_ERROR(AddPlace(context, call, PlaceOf(queue->steps, steps[index].ref), to));
  }
  return absl::OkStatus();
}

void ListInOrder(Context& context, const Call& call, const v1::ListQueueRequest& request, const core::Shares& shares,
                 v1::ListQueueResponse* response, const Done& done) {
  auto page = ReadPage(context, call, request, shares, response);
  if (!page.ok()) return done(page.status());
  auto runs = ReadRuns(context.reader, page->steps);
  if (!runs.ok()) return done(runs.status());
  LoadLive(context, *std::move(runs),
           [&context, call, response, done, page = *page](const absl::StatusOr<std::vector<loop::LiveRun>>& live) {
             if (!live.ok()) return done(live.status());
             WithForecast(context, *live,
                          [&context, call, response, done, page, runs = ByRun(*live)](const auto& forecast) {
                            FillPage(call, page, runs, forecast.get(), response);
                            SetErrors(context, response);
                            done(absl::OkStatus());
                          });
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
          if (!runs.ok()) return done(runs.status());
          WithForecast(context, *runs,
                       [&context, call, shares, response, done, live = runs->front()](const auto& forecast) {
                         done(Explain(context, call, shares, live, forecast.get(), response));
                       });
        },
        Hints::kAsked);
  });
}

}  // namespace tp::api
