// Calls that change something: the request id is looked up first, then the loop decides, and the answer
// is built from what it committed.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>

#include <google/protobuf/message.h>

#include "absl/status/statusor.h"
#include "api/call.h"
#include "api/request.h"
#include "loop/commands.h"
#include "store/rows.h"

namespace tp::api {

// `body_sha256`: of the request.
loop::Command MakeCommand(const Call& call, std::string request_id, std::string body_sha256, loop::Action action);

// The answer given to this request id before, if any. ALREADY_EXISTS: to another request.
absl::StatusOr<std::optional<store::RequestRow>> FindAnswered(Context& context, const Call& call,
                                                              const std::string& request_id,
                                                              const std::string& body_sha256);

struct Mutated {
  loop::LiveRun run;
  std::string note;
};
using MutatedThen = std::function<void(absl::StatusOr<Mutated>)>;

// Posts the command and calls `then` on a thread of context.calls with the run as it is afterwards.
void Mutate(Context& context, loop::Command command, MutatedThen then);

// The same for what is only asked: nothing is created, nothing remembered.
void Preview(Context& context, loop::DryRun dry_run, MutatedThen then);

// The run that an earlier answer spoke of.
void Repeat(Context& context, const store::RequestRow& answered, const MutatedThen& then);

// A change of something that is no run: answered with the sentence that the loop says of it.
template <typename Request, typename Response>
void ChangeWithNote(Context& context, const Call& call, const Request& request, Response* response, const Done& done,
                    loop::Action action) {
  if (auto status = CheckRequestId(request.request_id()); !status.ok()) return done(status);
  std::string body = BodySha256(call.method, request);
  const auto answered = FindAnswered(context, call, request.request_id(), body);
  if (!answered.ok()) return done(answered.status());
  if (*answered) {
    response->set_note((*answered)->note);
    return done(absl::OkStatus());
  }
  context.loop.Post(MakeCommand(call, request.request_id(), std::move(body), std::move(action)),
                    [response, done](const absl::StatusOr<loop::Answer>& answer) {
                      if (answer.ok()) response->set_note(answer->note);
                      done(answer.status());
                    });
}

}  // namespace tp::api
