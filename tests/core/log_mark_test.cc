#include "core/log_mark.h"

#include <gtest/gtest.h>

namespace tp::core {
namespace {

TEST(LogMark, WordsOfTheFrameworks) {
  const std::pair<std::string_view, LogMark> kLogs[] = {
      {"torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 79.1 GiB total",
       LogMark::kCudaOutOfMemory},
      {"RuntimeError: CUDA error: out of memory", LogMark::kCudaOutOfMemory},
      {"terminate called after throwing an instance of 'std::bad_alloc'", LogMark::kHostOutOfMemory},
      {"Traceback (most recent call last):\n  File \"a.py\", line 1\nMemoryError", LogMark::kHostOutOfMemory},
      {"RuntimeError: DataLoader worker (pid 77) is killed by signal: Bus error. It is possible that dataloader's "
       "workers are out of shared memory.",
       LogMark::kSharedMemory},
      {"OSError: [Errno 28] No space left on device: 'ckpt.pt'", LogMark::kDiskFull},
      {"ModuleNotFoundError: No module named 'flash_attn'", LogMark::kModuleMissing},
      {"RuntimeError: CUDA error: an illegal memory access was encountered", LogMark::kCudaError},
      {"RuntimeError: The server socket has failed to bind to [::]:29500 (errno: 98 - Address already in use).",
       LogMark::kPortInUse},
      {"[Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE)",
       LogMark::kNcclTimeout},
      {"torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1275, unhandled system error",
       LogMark::kNcclError},
      {"KeyError: 'loss'", LogMark::kNone},
      {"", LogMark::kNone},
  };
  for (const auto& [log, mark] : kLogs) EXPECT_EQ(FindLogMark(log), mark) << log;
}

TEST(LogMark, TheMostTellingOfSeveral) {
  EXPECT_EQ(FindLogMark("NCCL error in: x\nCUDA out of memory. Tried to\nNCCL error in: y"), LogMark::kCudaOutOfMemory);
}

TEST(LogMark, EachButNoneMeansSomethingThatTheUserAnswersFor) {
  for (const LogMark mark : kLogMarks) {
    const auto meaning = MeaningOf(mark);
    ASSERT_EQ(meaning.has_value(), mark != LogMark::kNone);
    if (!meaning) continue;
    EXPECT_NE(Traits(meaning->kind).budget, RetryBudget::kInfrastructure) << meaning->sentence;
  }
}

}  // namespace
}  // namespace tp::core
