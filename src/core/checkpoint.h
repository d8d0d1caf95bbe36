// What is known of a job's checkpoints: files beneath $TP_OUTPUT_DIR whose names say that they are, and what its
// metrics say. For people: what a pause or a loss costs. Decides nothing about states. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "core/step.h"

namespace tp::core {

// `path` from $TP_OUTPUT_DIR on. By the frameworks' habits: a part that holds `checkpoint` or `ckpt`, or a file as
// torch.save, safetensors and DeepSpeed name them. A file that is still being written beside its name does not count.
bool IsCheckpointPath(std::string_view path);

struct Checkpoint {
  std::string path;
  absl::Time written_at;  // on the storage's clock
  bool operator==(const Checkpoint&) const = default;
};

// What one look at the output of a step's newest attempt found.
struct CheckpointSight {
  int32_t attempt = 0;
  std::optional<Checkpoint> newest;  // of any attempt: output is kept
  absl::Time looked_at;
  bool after_end = false;  // the attempt had ended before the look began
  bool operator==(const CheckpointSight&) const = default;
};

// When the newest attempt ran; nothing before it did. `until`: its end, else `now`.
struct RunningSpan {
  absl::Time from;
  absl::Time until;
};
std::optional<RunningSpan> SpanOf(const Step& step, absl::Time now);

// Work that another start would do again: since the newest checkpoint, or since the start of the attempt.
absl::Duration WorkAtRisk(const CheckpointSight& sight, const RunningSpan& span);

// Of a step that was paused: `newest checkpoint step-500.ckpt: 4s of work is done again`.
std::string LossSentence(const CheckpointSight& sight, const RunningSpan& span);

// Of a step that its window will pause at `closes_at`, when that is near and its checkpoints have not advanced for
// as long as the warning is ahead; else empty.
std::string WindowWarning(const CheckpointSight& sight, const RunningSpan& span, absl::Time closes_at);

}  // namespace tp::core
