#include "api/mutation.h"

#include <utility>

#include "api/run_reader.h"

namespace tp::api {
namespace {

// What is live comes with the answer; what is over is in the store, since the commit came first.
void Complete(Context& context, int64_t run, std::string note, const MutatedThen& then) {
  auto stored = context.reader.GetRun(run);
  if (!stored.ok()) {
    then(stored.status());
    return;
  }
  LoadLive(context, {*std::move(stored)},
           [note = std::move(note), then](absl::StatusOr<std::vector<loop::LiveRun>> runs) {
             if (!runs.ok()) {
               then(runs.status());
             } else {
               then(Mutated{.run = std::move(runs->front()), .note = note});
             }
           });
}

// From the loop's thread to ours.
loop::Reply Continue(Context& context, MutatedThen then) {
  return [&context, then = std::move(then)](absl::StatusOr<loop::Answer> answer) {
    context.calls.Post([&context, then, answer = std::move(answer)]() mutable {
      if (!answer.ok()) {
        then(answer.status());
      } else if (answer->live) {
        then(Mutated{.run = *std::move(answer->live), .note = std::move(answer->note)});
      } else {
        Complete(context, answer->run, std::move(answer->note), then);
      }
    });
  };
}

}  // namespace

loop::Command MakeCommand(const Call& call, std::string request_id, std::string body_sha256, loop::Action action) {
  return {.who = call.principal(),
          .request_id = std::move(request_id),
          .method = call.method,
          .body_sha256 = std::move(body_sha256),
          .action = std::move(action)};
}

absl::StatusOr<std::optional<store::RequestRow>> FindAnswered(Context& context, const Call& call,
                                                              const std::string& request_id,
                                                              const std::string& body_sha256) {
  TP_ASSIGN_OR_RETURN(std::optional<store::RequestRow> row, context.reader.FindRequest(call.caller.user, request_id));
  if (!row || row->body_sha256 == body_sha256) return row;
  return WithReason(
      WithField(Error(absl::StatusCode::kAlreadyExists,
                      "request_id {} was used for another request ({}): use a new one", request_id, row->method),
                "request_id"),
      "REQUEST_ID_REUSED");
}

void Mutate(Context& context, loop::Command command, MutatedThen then) {
  context.loop.Post(std::move(command), Continue(context, std::move(then)));
}

void Preview(Context& context, loop::DryRun dry_run, MutatedThen then) {
  context.loop.Post(std::move(dry_run), Continue(context, std::move(then)));
}

void Repeat(Context& context, const store::RequestRow& answered, const MutatedThen& then) {
  Complete(context, answered.run, answered.note, then);
}

}  // namespace tp::api
