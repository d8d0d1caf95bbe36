#include "cli/watch.h"

#include <algorithm>
#include <optional>
#include <string>

#include <fmt/format.h>
#include <unistd.h>

#include "absl/time/clock.h"
#include "base/status.h"
#include "cli/interrupt.h"
#include "cli/screen.h"
#include "cli/stream.h"

namespace tp::cli {
namespace {

// Between two looks at the server, however much happens there.
constexpr absl::Duration kPause = absl::Milliseconds(300);
// Ages on the screen grow by themselves.
constexpr absl::Duration kRepaint = absl::Seconds(1);
constexpr absl::Duration kSilence = absl::Minutes(5);

class Watcher {
 public:
  Watcher(Context& context, Client& client, const std::function<absl::StatusOr<Frame>(Client&)>& fetch)
      : context_(context), client_(client), fetch_(fetch) {
    const bool text = context.globals.output == OutputFormat::kTable || context.globals.output == OutputFormat::kWide;
    if (text && context.terminal().is_tty) screen_.emplace(STDOUT_FILENO);
  }

  absl::StatusOr<ExitCode> Run() {
    while (true) {
      // First, so that nothing that happens during the look is missed; nor is what it shows a reason for another.
      TP_ASSIGN_OR_RETURN(const v1::GetServerInfoResponse info,
                          client_.Call(&v1::SystemService::Stub::GetServerInfo, v1::GetServerInfoRequest()));
      revision_ = std::max(revision_, info.revision());
      TP_ASSIGN_OR_RETURN(const Frame frame, fetch_(client_));
      TP_RETURN_IF_ERROR(Paint(frame));
      if (frame.last) return ExitCode::kOk;
      TP_ASSIGN_OR_RETURN(const bool interrupted, AwaitChange(frame));
      if (interrupted || !interrupt_.Sleep(kPause)) return ExitCode::kInterrupted;
    }
  }

 private:
  absl::Status Paint(const Frame& frame) {
    TP_ASSIGN_OR_RETURN(const std::string text, Render(context_.globals.output, frame.answer));
    if (screen_) {
      screen_->Show(text + notice_, context_.terminal().rows);
      return absl::OkStatus();
    }
    if (text == shown_) return absl::OkStatus();
    if (!shown_.empty() && context_.globals.output != OutputFormat::kJson) context_.Print("\n");
    context_.Print(text);
    shown_ = text;
    return context_.Flush();
  }

  // Until an event; meanwhile the screen is kept up to date. True: Ctrl-C.
  absl::StatusOr<bool> AwaitChange(const Frame& frame) {
    while (true) {
      TP_ASSIGN_OR_RETURN(const StreamEnd end, AwaitEvent(screen_ ? kRepaint : kSilence));
      if (end == StreamEnd::kInterrupted) return true;
      if (end != StreamEnd::kDeadline) return false;
      if (screen_) TP_RETURN_IF_ERROR(Paint(frame));
    }
  }

  absl::StatusOr<StreamEnd> AwaitEvent(absl::Duration at_most) {
    const StreamOptions options = {.deadline = absl::Now() + at_most, .interrupt = &interrupt_, .on_away = [this] {
                                     notice_ = "\nthe server is away; waiting for it\n";
                                     if (!screen_) context_.Say("the server is away; waiting for it");
                                   }};
    return ReadStream<v1::WatchEventsResponse>(
        client_, options,
        [&](grpc::ClientContext* call) {
          v1::WatchEventsRequest request;
          request.set_after_revision(revision_);
          return client_.stub<v1::RunService::Stub>().WatchEvents(call, request);
        },
        [&](const v1::WatchEventsResponse& response) {
          notice_.clear();
          return !Concerns(response);
        });
  }

  // Whether it is a reason to look again.
  bool Concerns(const v1::WatchEventsResponse& response) {
    switch (response.what_case()) {
      case v1::WatchEventsResponse::kEvent:
        revision_ = response.event().revision();
        return true;
      case v1::WatchEventsResponse::kBookmark:
        revision_ = response.bookmark();
        return false;
      case v1::WatchEventsResponse::kResync:
        revision_ = response.resync();
        return true;
      case v1::WatchEventsResponse::WHAT_NOT_SET:
        return false;
    }
    return false;
  }

  Context& context_;
  Client& client_;
  const std::function<absl::StatusOr<Frame>(Client&)>& fetch_;
  Interrupt interrupt_;
  std::optional<Screen> screen_;
  int64_t revision_ = 0;
  std::string shown_;
  std::string notice_;
};

}  // namespace

absl::StatusOr<ExitCode> Watch(Context& context, const std::function<absl::StatusOr<Frame>(Client&)>& fetch) {
  TP_ASSIGN_OR_RETURN(Client* const client, context.Connect());
  return Watcher(context, *client, fetch).Run();
}

absl::StatusOr<ExitCode> ShowOrWatch(Context& context, bool watch,
                                     const std::function<absl::StatusOr<Frame>(Client&)>& fetch) {
  if (watch) return Watch(context, fetch);
  TP_ASSIGN_OR_RETURN(Client* const client, context.Connect());
  TP_ASSIGN_OR_RETURN(const Frame frame, fetch(*client));
  const absl::StatusOr<ExitCode> code = Show(context, frame.answer);
  if (!frame.talk.empty()) context.Say(frame.talk);
  return code;
}

}  // namespace tp::cli
