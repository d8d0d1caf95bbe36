// Calls that change something: the request id is looked up first, then the loop decides, and the answer
// is built from what it committed.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include <google/protobuf/message.h>

#include "absl/status/statusor.h"
#include "api/call.h"
#include "loop/commands.h"
#include "store/rows.h"

namespace tp::api {

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

}  // namespace tp::api
