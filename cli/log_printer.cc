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
  int64_t& next = next_offset_[{chunk.rank(), chunk.attempt()}];
  std::string_view data = chunk.data();
  if (chunk.offset() < next) {
    data.remove_prefix(std::min(data.size(), static_cast<size_t>(next - chunk.offset())));
  }
  if (data.empty()) return absl::OkStatus();
  next = chunk.offset() + static_cast<int64_t>(chunk.data().size());
  return prefixed_ ? PrintLines(chunk.rank(), data) : WriteAll(fd_, data, "stdout");
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
