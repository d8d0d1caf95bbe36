// Finds runs and completes them with what only the loop knows.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "api/call.h"
#include "api/convert.h"
#include "core/run.h"
#include "loop/commands.h"
#include "tp/v1/run.pb.h"

namespace tp::api {

// `42`, `train-42` or `@last` (the caller's newest), as committed. NOT_FOUND says what was looked for.
// Blocking: reads the store.
absl::StatusOr<core::RunWithSteps> FindRun(Context& context, const Call& call, std::string_view selector);

// Asks the loop for those that are not over, a few at a time. `then` is called on a thread of context.calls, or at
// once where nothing is to be asked; runs keep their order.
using RunsThen = std::function<void(absl::StatusOr<std::vector<loop::LiveRun>>)>;
enum class Hints : uint8_t { kLeftOut, kAsked };
void LoadLive(Context& context, std::vector<core::RunWithSteps> stored, RunsThen then, Hints hints = Hints::kLeftOut);

// What the caller may see of a run.
v1::Run View(Context& context, const Call& call, const loop::LiveRun& run, Tasks tasks = Tasks::kSpeaking);

// PERMISSION_DENIED for what a job of somebody else's wrote; FAILED_PRECONDITION where it was removed.
absl::Status CheckMayReadContent(const Call& call, const core::Run& run);

}  // namespace tp::api
