// tp queue, why: what waits, behind whom and for what.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "absl/time/clock.h"
#include "base/status.h"
#include "cli/answer.h"
#include "cli/commands/commands.h"
#include "cli/render/estimate.h"
#include "cli/render/queue.h"
#include "cli/render/runs.h"
#include "cli/secrets.h"
#include "cli/watch.h"

namespace tp::cli {
namespace {

constexpr int64_t kQueuePage = 200;

struct QueueFlags {
  std::string series;
  int64_t limit = 50;  // 0: none
  bool watch = false;
};

struct Queue {
  std::vector<v1::QueueEntry> entries;
  int64_t total_count = 0;
  int64_t total_cards = 0;
  v1::EstimateErrors so_far;  // none of any start: nothing is known

  bool more() const { return static_cast<int64_t>(entries.size()) < total_count; }
};

absl::StatusOr<Queue> FetchQueue(Client& client, const QueueFlags& flags) {
  Queue queue;
  v1::ListQueueRequest request;
  request.set_series(flags.series);
  bool wants_more = true;
  while (wants_more) {
    const int64_t left = flags.limit > 0 ? flags.limit - static_cast<int64_t>(queue.entries.size()) : kQueuePage;
    request.set_page_size(static_cast<int32_t>(std::min(left, kQueuePage)));
    TP_ASSIGN_OR_RETURN(const v1::ListQueueResponse page, client.Call(&v1::RunService::Stub::ListQueue, request));
    queue.entries.insert(queue.entries.end(), page.entries().begin(), page.entries().end());
    queue.total_count = page.total_count();
    queue.total_cards = page.total_cards();
    queue.so_far = page.estimates_so_far();
    request.set_page_token(page.next_page_token());
    const bool full = flags.limit > 0 && static_cast<int64_t>(queue.entries.size()) >= flags.limit;
    wants_more = !page.next_page_token().empty() && !full;
  }
  return queue;
}

std::string TalkOf(const Queue& queue) {
  if (queue.entries.empty()) return "nothing waits";
  std::string sentence = QueueSentence(queue.total_count, queue.total_cards);
  if (queue.so_far.starts() > 0) sentence += "; starts are estimates, so far " + ErrorsText(queue.so_far);
  if (queue.more()) sentence += fmt::format("; {} shown, -n 0 shows all", queue.entries.size());
  return sentence;
}

absl::StatusOr<Frame> QueueFrame(const Context& context, Client& client, const QueueFlags& flags) {
  TP_ASSIGN_OR_RETURN(Queue fetched, FetchQueue(client, flags));
  const auto queue = std::make_shared<const Queue>(std::move(fetched));
  Frame frame;
  frame.talk = TalkOf(*queue);
  frame.answer.table = [&context, queue](bool wide) {
    return queue->entries.empty() ? "" : QueueTable(queue->entries, wide, context.terminal(), absl::Now());
  };
  frame.answer.fill = [queue](Json& document) {
    document["entries"] = Json::array();
    for (const v1::QueueEntry& entry : queue->entries) document["entries"].push_back(ToJson(entry));
    document["total_count"] = queue->total_count;
    document["total_cards"] = queue->total_cards;
    document["estimates_so_far"] = queue->so_far.starts() > 0 ? ToJson(queue->so_far) : Json();
    document["more"] = queue->more();
  };
  frame.answer.names.emplace();
  for (const v1::QueueEntry& entry : queue->entries) {
    if (!entry.run().empty()) frame.answer.names->push_back(entry.run());
  }
  return frame;
}

absl::StatusOr<v1::ExplainRunResponse> FetchExplanation(Client& client, const std::string& selector) {
  v1::ExplainRunRequest request;
  request.set_run(selector);
  TP_ASSIGN_OR_RETURN(v1::ExplainRunResponse response, client.Call(&v1::RunService::Stub::ExplainRun, request));
  MaskSecrets(*response.mutable_run());
  return response;
}

absl::StatusOr<ExitCode> ShowWhy(Context& context, const std::string& selector) {
  TP_ASSIGN_OR_RETURN(Client* const client, context.Connect());
  TP_ASSIGN_OR_RETURN(const v1::ExplainRunResponse response, FetchExplanation(*client, selector));
  Answer answer;
  answer.table = [&](bool) { return WhyPage(response, context.terminal(), absl::Now()); };
  answer.fill = [&](Json& document) {
    document["run"] = response.run().id();
    document["state"] = StateName(response.run().state());
    document["steps"] = Json::array();
    for (const v1::StepExplanation& step : response.steps()) document["steps"].push_back(ToJson(step));
  };
  answer.names = std::vector<std::string>{response.run().id()};
  return Show(context, answer);
}

void AddQueue(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand("queue", "What waits, in the order in which it gets its turn");
  command->footer(
      "Order: priority, which rises while a step waits, then submission. A step that waits for something else holds\n"
      "nobody up. Names of other people's runs are for operators and admins.");
  auto flags = std::make_shared<QueueFlags>();
  command->add_option("--series", flags->series, "Only what wants cards of this series (tp series)");
  command->add_option("-n,--limit", flags->limit, "At most so many; 0: all")->check(CLI::NonNegativeNumber);
  command->add_flag("-w,--watch", flags->watch, "Show it again whenever something happens, until Ctrl-C");
  command->callback([&context, flags] {
    context.action = [flags](Context& c) {
      return ShowOrWatch(c, flags->watch, [&](Client& client) { return QueueFrame(c, client, *flags); });
    };
  });
}

void AddWhy(CLI::App& app, Context& context) {
  CLI::App* command =
      app.add_subcommand("why", "What keeps a run from starting, what would let it start, and who is before it");
  auto run = std::make_shared<std::string>();
  command->add_option("RUN", *run, "42, train-42 or @last")->required();
  command->callback([&context, run] { context.action = [run](Context& c) { return ShowWhy(c, *run); }; });
}

}  // namespace

void AddQueueCommands(CLI::App& app, Context& context) {
  AddQueue(app, context);
  AddWhy(app, context);
}

}  // namespace tp::cli
