#include "core/log_mark.h"

#include <algorithm>

namespace tp::core {
namespace {

bool HasAny(std::string_view text, std::initializer_list<std::string_view> phrases) {
  return std::any_of(phrases.begin(), phrases.end(),
                     [&](std::string_view phrase) { return text.find(phrase) != std::string_view::npos; });
}

bool Shows(std::string_view text, LogMark mark) {
  switch (mark) {
    case LogMark::kCudaOutOfMemory:
      return HasAny(text,
                    {"CUDA out of memory", "torch.cuda.OutOfMemoryError", "torch.OutOfMemoryError: CUDA",
                     "CUDA_ERROR_OUT_OF_MEMORY", "CUDA error: out of memory", "RESOURCE_EXHAUSTED: Out of memory"});
    case LogMark::kHostOutOfMemory:
      return HasAny(text, {"std::bad_alloc", "\nMemoryError", "Cannot allocate memory",
                           "DefaultCPUAllocator: can't allocate", "not enough memory: you tried to allocate"});
    case LogMark::kSharedMemory:
      return HasAny(text, {"insufficient shared memory (shm)", "unable to open shared memory object",
                           "is killed by signal: Bus error"});
    case LogMark::kDiskFull:
      return HasAny(text, {"No space left on device", "Disk quota exceeded"});
    case LogMark::kModuleMissing:
      return HasAny(text, {"ModuleNotFoundError: No module named", "ImportError: cannot import name"});
    case LogMark::kCudaError:
      return HasAny(text, {"CUDA error: ", "CUDA driver version is insufficient", "No CUDA GPUs are available"});
    case LogMark::kPortInUse:
      return HasAny(text, {"Address already in use", "EADDRINUSE"});
    case LogMark::kNone:
      return true;
    case LogMark::kNcclTimeout:
      return HasAny(text, {"Watchdog caught collective operation timeout", "NCCL timeout",
                           "Some NCCL operations have failed or timed out"});
    case LogMark::kNcclError:
      return HasAny(text, {"NCCL error", "NCCL Error", "ncclSystemError", "ncclInternalError", "ncclRemoteError",
                           "ncclUnhandledCudaError", "Connection closed by peer"});
  }
  return false;
}

}  // namespace

LogMark FindLogMark(std::string_view log_end) {
  for (const LogMark mark : kLogMarks) {
    if (mark != LogMark::kNone && Shows(log_end, mark)) return mark;
  }
  return LogMark::kNone;
}

std::optional<LogMeaning> MeaningOf(LogMark mark) {
  switch (mark) {
    case LogMark::kCudaOutOfMemory:
      return LogMeaning{FailureKind::kUserOom,
                        "its log says CUDA out of memory: a smaller batch, or more cards to share the model"};
    case LogMark::kHostOutOfMemory:
      return LogMeaning{
          FailureKind::kUserOom,
          "its log says that the node's memory did not suffice: fewer data loader workers, or smaller ones"};
    case LogMark::kSharedMemory:
      return LogMeaning{FailureKind::kUserExit,
                        "its log says that /dev/shm is too small: fewer data loader workers, or a larger shm_size"};
    case LogMark::kDiskFull:
      return LogMeaning{FailureKind::kUserExit,
                        "its log says that a disk or a disk quota is full: remove what is old, or write elsewhere"};
    case LogMark::kModuleMissing:
      return LogMeaning{
          FailureKind::kUserExit,
          "its log says that Python did not find a module: is it in the image, and the right python first?"};
    case LogMark::kCudaError:
      return LogMeaning{
          FailureKind::kUserExit,
          "its log says CUDA error: CUDA_LAUNCH_BLOCKING=1 shows where; seen on one node only, tell the admin"};
    case LogMark::kPortInUse:
      return LogMeaning{FailureKind::kUserExit,
                        "its log says that a port was in use: take MASTER_PORT as given, and no fixed ports"};
    case LogMark::kNone:
      return std::nullopt;
    case LogMark::kNcclTimeout:
      return LogMeaning{FailureKind::kUserExit,
                        "its log says NCCL timeout: another rank was late or had ended; look at the ranks before it"};
    case LogMark::kNcclError:
      return LogMeaning{
          FailureKind::kUserExit,
          "its log says NCCL error: another rank had ended, or the network between them; NCCL_DEBUG=INFO says more"};
  }
  return std::nullopt;
}

}  // namespace tp::core
