#include "cli/log_printer.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/status.h"
#include "cli/render/text.h"
#include "cli/write_all.h"

namespace tp::cli {
namespace {

// A line longer than this is printed in pieces, so that it cannot fill the memory.
constexpr size_t kLongestLineBytes = 64 * 1024;

}  // namespace

absl::Status LogPrinter::Accept(const v1::ReadLogResponse& chunk) {
  const Place place(chunk.step(), chunk.attempt());
  const std::string_view data = TakeNew(place, chunk);
  if (data.empty()) return absl::OkStatus();
  if (place != place_) TP_RETURN_IF_ERROR(Enter(place, chunk));
  return prefixed_ ? PrintLines(chunk.rank(), data) : Print(data);
}

absl::Status LogPrinter::Enter(const Place& place, const v1::ReadLogResponse& chunk) {
  TP_RETURN_IF_ERROR(Finish());
  const bool first = place_ == Place();
  place_ = place;
  if (chunk.step_name().empty()) return absl::OkStatus();
  const std::string attempt = chunk.attempt() > 1 ? fmt::format(", attempt {}", chunk.attempt()) : "";
  const std::string title =
      fmt::format("==> step {} {}{} <==\n", chunk.step(), EscapeControl(chunk.step_name()), attempt);
  return Print((in_line_ ? "\n" : "") + std::string(first ? "" : "\n") + title);
}

absl::Status LogPrinter::Print(std::string_view data) {
  if (data.empty()) return absl::OkStatus();
  in_line_ = data.back() != '\n';
  return WriteAll(fd_, data, "stdout");
}

std::string_view LogPrinter::TakeNew(const Place& place, const v1::ReadLogResponse& chunk) {
  int64_t& printed_end = printed_ends_[{place, chunk.rank()}];
  std::string_view data = chunk.data();
  const int64_t repeated = std::max<int64_t>(0, printed_end - chunk.offset());
  data.remove_prefix(std::min(data.size(), static_cast<size_t>(repeated)));
  printed_end = std::max(printed_end, chunk.offset() + static_cast<int64_t>(chunk.data().size()));
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
  return Print(out);
}

absl::Status LogPrinter::Finish() {
  for (const auto& [rank, partial] : partial_) {
    if (!partial.empty()) TP_RETURN_IF_ERROR(Print(rank + " | " + partial + "\n"));
  }
  partial_.clear();
  return absl::OkStatus();
}

}  // namespace tp::cli
