// tp events.
#include <memory>
#include <optional>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "absl/time/clock.h"
#include "base/status.h"
#include "cli/answer.h"
#include "cli/commands/commands.h"
#include "cli/events.h"
#include "cli/follow.h"
#include "cli/interrupt.h"
#include "cli/stream.h"

namespace tp::cli {
namespace {

struct EventFlags {
  std::string run;
  bool follow = false;
};

absl::StatusOr<ExitCode> ShowEvents(Context& context, const std::string& run) {
  TP_ASSIGN_OR_RETURN(Client* const client, context.Connect());
  TP_ASSIGN_OR_RETURN(const std::vector<v1::Event> events, ListEvents(*client, run));
  Answer answer;
  answer.table = [&](bool wide) { return EventTable(events, wide, context.terminal(), absl::Now()); };
  answer.fill = [&](Json& document) {
    document["events"] = Json::array();
    for (const v1::Event& event : events) document["events"].push_back(ToJson(event));
  };
  return Show(context, answer);
}

// One line an event: for people, or with -o json an object.
absl::Status PrintEvent(const Context& context, const v1::Event& event) {
  if (context.globals.output == OutputFormat::kJson) {
    context.Print(ToJson(event).dump(-1, ' ', true, Json::error_handler_t::replace) + "\n");
  } else {
    context.Print(EventLine(event) + "\n");
  }
  return context.Flush();
}

// From `revision` on; of one run or, without, of all.
class EventFollower {
 public:
  EventFollower(Context& context, Client& client, std::optional<int64_t> run)
      : context_(context), client_(client), run_(run) {}

  // What a list showed before the following began.
  absl::Status Replay(const std::vector<v1::Event>& events) {
    for (const v1::Event& event : events) TP_RETURN_IF_ERROR(Accept(event));
    return absl::OkStatus();
  }

  absl::StatusOr<ExitCode> Follow() {
    Interrupt interrupt;
    const StreamOptions options = {.interrupt = &interrupt,
                                   .on_away = [this] { context_.Say("the server is away; waiting for it"); }};
    absl::Status printed;
    TP_ASSIGN_OR_RETURN(const StreamEnd end, ReadStream<v1::WatchEventsResponse>(
                                                 client_, options,
                                                 [&](grpc::ClientContext* call) {
                                                   v1::WatchEventsRequest request;
                                                   request.set_after_revision(revision_);
                                                   return client_.stub<v1::RunService::Stub>().WatchEvents(call,
                                                                                                           request);
                                                 },
                                                 [&](const v1::WatchEventsResponse& response) {
                                                   printed = Take(response);
                                                   return printed.ok();
                                                 }));
    if (!printed.ok()) return printed;
    return end == StreamEnd::kInterrupted ? ExitCode::kInterrupted : ExitCode::kOk;
  }

 private:
  absl::Status Take(const v1::WatchEventsResponse& response) {
    switch (response.what_case()) {
      case v1::WatchEventsResponse::kEvent:
        return Accept(response.event());
      case v1::WatchEventsResponse::kBookmark:
        revision_ = std::max(revision_, response.bookmark());
        return absl::OkStatus();
      case v1::WatchEventsResponse::kResync:
        context_.Say("too much happened at once: some events are left out here; `tp events RUN` has them all");
        revision_ = response.resync();
        return absl::OkStatus();
      case v1::WatchEventsResponse::WHAT_NOT_SET:
        return absl::OkStatus();
    }
    return absl::OkStatus();
  }

  absl::Status Accept(const v1::Event& event) {
    if (event.revision() <= revision_) return absl::OkStatus();
    revision_ = event.revision();
    if (run_ && *run_ != event.run()) return absl::OkStatus();
    return PrintEvent(context_, event);
  }

  Context& context_;
  Client& client_;
  const std::optional<int64_t> run_;
  int64_t revision_ = 0;
};

absl::StatusOr<ExitCode> FollowEvents(Context& context, const EventFlags& flags) {
  TP_ASSIGN_OR_RETURN(Client* const client, context.Connect());
  if (flags.run.empty()) return EventFollower(context, *client, std::nullopt).Follow();
  TP_ASSIGN_OR_RETURN(const v1::Run run, FetchRun(*client, flags.run));
  TP_ASSIGN_OR_RETURN(const std::vector<v1::Event> events, ListEvents(*client, run.id()));
  EventFollower follower(context, *client, run.n());
  TP_RETURN_IF_ERROR(follower.Replay(events));
  return follower.Follow();
}

absl::StatusOr<ExitCode> Events(Context& context, const EventFlags& flags) {
  if (flags.follow) return FollowEvents(context, flags);
  if (flags.run.empty()) return InvalidArgument("RUN is missing: name a run, or follow all with -f");
  return ShowEvents(context, flags.run);
}

}  // namespace

void AddEventCommands(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand("events", "What happened to a run, step by step");
  auto flags = std::make_shared<EventFlags>();
  command->add_option("RUN", flags->run, "42, train-42 or @last; with -f optional");
  command->add_flag("-f,--follow", flags->follow, "Go on until Ctrl-C; with -o json one object a line");
  command->callback([&context, flags] { context.action = [flags](Context& c) { return Events(c, *flags); }; });
}

}  // namespace tp::cli
