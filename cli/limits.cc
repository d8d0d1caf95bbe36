#include "cli/limits.h"

#include <array>
#include <charconv>
#include <limits>

#include "base/status.h"

namespace tp::cli {
namespace {

struct ByteUnit {
  std::string_view name;
  int shift;
};

constexpr std::array<ByteUnit, 7> kByteUnits = {
    {{"", 0}, {"B", 0}, {"KiB", 10}, {"MiB", 20}, {"GiB", 30}, {"TiB", 40}, {"PiB", 50}}};

// A whole number from 0 on at the front of `text`, taken off it.
std::optional<int64_t> TakeNumber(std::string_view& text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number < 0) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return number;
}

std::optional<int64_t> ParseBytes(std::string_view text) {
  const std::optional<int64_t> number = TakeNumber(text);
  if (!number) return std::nullopt;
  for (const ByteUnit& unit : kByteUnits) {
    if (text != unit.name) continue;
    if (*number > std::numeric_limits<int64_t>::max() >> unit.shift) return std::nullopt;
    return *number << unit.shift;
  }
  return std::nullopt;
}

// `none` and `default`, as every limit takes them.
bool ParseWord(std::string_view text, std::optional<int64_t>& limit) {
  if (text == "none") limit = kNoLimit;
  return text == "none" || text == "default";
}

absl::Status ApplySeries(std::string_view text, v1::SetQuotaRequest& request) {
  const size_t sign = text.find('=');
  const std::string series(text.substr(0, sign));
  if (sign == std::string_view::npos || series.empty()) {
    return InvalidArgument("--series {}: write SERIES=N, as in h200=8; tp series lists them", text);
  }
  TP_ASSIGN_OR_RETURN(const std::optional<int64_t> limit, ParseLimit(text.substr(sign + 1), "--series " + series));
  if (limit) {
    (*request.mutable_limits()->mutable_series_gpus())[series] = *limit;
  } else {
    request.add_clear("series_gpus." + series);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::optional<int64_t>> ParseLimit(std::string_view text, std::string_view what) {
  std::optional<int64_t> limit;
  if (ParseWord(text, limit)) return limit;
  std::string_view rest = text;
  limit = TakeNumber(rest);
  if (limit && rest.empty()) return limit;
  return InvalidArgument("{} {}: a limit is a whole number from 0 on, none or default", what, text);
}

absl::StatusOr<std::optional<int64_t>> ParseByteLimit(std::string_view text, std::string_view what) {
  std::optional<int64_t> limit;
  if (ParseWord(text, limit)) return limit;
  limit = ParseBytes(text);
  if (limit) return limit;
  return InvalidArgument("{} {}: write bytes with their unit (500GiB, 1TiB), none or default", what, text);
}

bool LimitFlags::empty() const {
  return gpus.empty() && series.empty() && jobs.empty() && gpu_hours.empty() && storage.empty();
}

absl::Status ApplyLimits(const LimitFlags& flags, v1::SetQuotaRequest& request) {
  v1::QuotaLimits& limits = *request.mutable_limits();
  if (!flags.gpus.empty()) {
    TP_ASSIGN_OR_RETURN(const auto gpus, ParseLimit(flags.gpus, "--gpus"));
    gpus ? limits.set_gpus(*gpus) : request.add_clear("gpus");
  }
  for (const std::string& series : flags.series) TP_RETURN_IF_ERROR(ApplySeries(series, request));
  if (!flags.jobs.empty()) {
    TP_ASSIGN_OR_RETURN(const auto jobs, ParseLimit(flags.jobs, "--jobs"));
    jobs ? limits.set_jobs(*jobs) : request.add_clear("jobs");
  }
  if (!flags.gpu_hours.empty()) {
    TP_ASSIGN_OR_RETURN(const auto gpu_hours, ParseLimit(flags.gpu_hours, "--gpu-hours"));
    gpu_hours ? limits.set_gpu_hours(*gpu_hours) : request.add_clear("gpu_hours");
  }
  if (!flags.storage.empty()) {
    TP_ASSIGN_OR_RETURN(const auto storage, ParseByteLimit(flags.storage, "--storage"));
    storage ? limits.set_storage_bytes(*storage) : request.add_clear("storage_bytes");
  }
  return absl::OkStatus();
}

}  // namespace tp::cli
