// From core values to what the API answers. Pure.
#pragma once

#include <optional>
#include <string>

#include "absl/time/time.h"
#include "core/ledger.h"
#include "core/run.h"
#include "loop/commands.h"
#include "store/store.h"
#include "tp/v1/run.pb.h"
#include "tp/v1/usage.pb.h"

namespace tp::api {

// Whether the environment and who is told are part of the answer; values of secret-looking names never are.
enum class Environment { kShown, kLeftOut };

// A run with what the loop knows of it; `gates` and `shapes` are empty for one that is over.
// Of an array: every task, or the one that speaks for the run.
enum class Tasks : uint8_t { kAll, kSpeaking };
v1::Run ToProto(const loop::LiveRun& run, Environment environment, absl::Time now, Tasks tasks = Tasks::kAll);

v1::GateVerdict ToProto(const core::GateVerdict& verdict);

v1::Event ToProto(const store::EventRow& row);

// `run_id`: `<slug>-<n>`
v1::Interval ToProto(const core::LedgerRow& row, const std::string& run_id);

v1::JobState ToProto(core::JobState state);
v1::RunState ToProto(core::RunWord word);
v1::Gate ToProto(core::GateKind gate);
v1::NoticeEvent ToProto(core::NoticeEvent event);

// Nothing for UNSPECIFIED and for values of a newer client.
std::optional<core::RunWord> FromProto(v1::RunState state);
std::optional<core::NoticeEvent> FromProto(v1::NoticeEvent event);
std::optional<store::UsageKey> FromProto(v1::UsageKey key);

google::protobuf::Timestamp ToProto(absl::Time time);
google::protobuf::Duration ToProto(absl::Duration duration);
absl::Time FromProto(const google::protobuf::Timestamp& time);
absl::Duration FromProto(const google::protobuf::Duration& duration);

}  // namespace tp::api
