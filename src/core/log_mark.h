// Failures that logs tell in known words (PyTorch's, NCCL's, the C library's): what they mean for the user. Pure.
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "core/step.h"
#include "tp/records.h"

namespace tp::core {

inline constexpr std::array kLogMarks = {
    LogMark::kCudaOutOfMemory, LogMark::kHostOutOfMemory, LogMark::kSharedMemory, LogMark::kDiskFull,
    LogMark::kModuleMissing,   LogMark::kCudaError,       LogMark::kPortInUse,    LogMark::kNone,
    LogMark::kNcclTimeout,     LogMark::kNcclError};

// The most telling mark in the last bytes of a log.
LogMark FindLogMark(std::string_view log_end);

// What is known of the end by the mark. `kind` is one that the user answers for: a log is the user's to write, so it
// never pays a retry from the infrastructure's budget.
struct LogMeaning {
  FailureKind kind = FailureKind::kUserExit;
  std::string_view sentence;  // `its log says CUDA out of memory: ...`
};
std::optional<LogMeaning> MeaningOf(LogMark mark);

}  // namespace tp::core
