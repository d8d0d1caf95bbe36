#include "cli/log_printer.h"

#include <algorithm>

#include "base/status.h"
#include "cli/write_all.h"

namespace tp::cli {
namespace {

// A line longer than this is printed in pieces, so that it cannot fill the memory.
constexpr size_t kLongestLineBytes = 64 * 1024;

}  // namespace

absl::Status LogPrinter::Accept(const v1::ReadLogResponse& chunk) {
  const std::string_view data = TakeNew(chunk);
  return prefixed_ ? PrintLines(chunk.rank(), data) : WriteAll(fd_, data, "stdout");
}

std::string_view LogPrinter::TakeNew(const v1::ReadLogResponse& chunk) {
  Position& position = positions_[{chunk.rank(), chunk.attempt()}];
  const auto chunk_end = chunk.offset() + static_cast<int64_t>(chunk.data().size());
  // Within a stream offsets only rise: a lower one is of the next step, whose attempts count anew.
  const bool next_step = position.stream == stream_ && chunk.offset() < position.stream_end;
  if (next_step) position.printed_end = chunk.offset();
  position.stream = stream_;
  position.stream_end = chunk_end;

  std::string_view data = chunk.data();
  const int64_t repeated = std::max<int64_t>(0, position.printed_end - chunk.offset());
  data.remove_prefix(std::min(data.size(), static_cast<size_t>(repeated)));
  position.printed_end = std::max(position.printed_end, chunk_end);
  return data;
}

absl::Status LogPrinter::PrintLines(const std::string& rank, std::string_view data) {
  std::string& partial = partial_[rank];
  std::string out;
  for (const char c : data) {
    partial += c;
    if (c != '\n' && partial.size() < kLongestLineBytes) continue;
    out += rank + " | " + partial;
    if (c != '\n') out += '\n';
    partial.clear();
  }
  return WriteAll(fd_, out, "stdout");
}

absl::Status LogPrinter::Finish() {
  for (const auto& [rank, partial] : partial_) {
    if (!partial.empty()) TP_RETURN_IF_ERROR(WriteAll(fd_, rank + " | " + partial + "\n", "stdout"));
  }
  partial_.clear();
  return absl::OkStatus();
}

}  // namespace tp::cli
