// What a change of rules would do, asked of the loop and worked out on a thread of the API's (plan/what_if.h).
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "api/call.h"
#include "api/context.h"
#include "loop/commands.h"
#include "tp/v1/system.pb.h"

namespace tp::api {

struct Foretold {
  std::string note;  // what the change would be answered with
  v1::QueueForecast forecast;
};
using ForetoldThen = std::function<void(absl::StatusOr<Foretold>)>;

// `then` is called on a thread of context.calls. Errors are those of the change itself.
void Foretell(Context& context, const Call& call, loop::Proposal proposal, ForetoldThen then);

// The same as an answer of its own.
template <typename Response>
void AnswerForetold(Context& context, const Call& call, loop::Proposal proposal, Response* response, const Done& done) {
  Foretell(context, call, std::move(proposal), [response, done](absl::StatusOr<Foretold> foretold) {
    if (foretold.ok()) {
      response->set_note(foretold->note);
      *response->mutable_forecast() = std::move(foretold->forecast);
    }
    done(foretold.status());
  });
}

}  // namespace tp::api
