#include "cli/render/time.h"

#include <array>
#include <charconv>
#include <optional>

#include <fmt/format.h>

#include "absl/time/civil_time.h"
#include "base/status.h"

namespace tp::cli {
namespace {

struct Unit {
  std::string_view name;
  int64_t seconds;
};

constexpr std::array<Unit, 4> kUnits = {{{"d", 86400}, {"h", 3600}, {"m", 60}, {"s", 1}}};

const Unit* FindUnit(char name) {
  for (const Unit& unit : kUnits) {
    if (unit.name.front() == name) return &unit;
  }
  return nullptr;
}

// The number and unit at the front of `text`, taken off it; 0 where there is none.
int64_t TakeTerm(std::string_view& text) {
  constexpr int64_t kMaxCount = 1'000'000'000;
  int64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc() || count < 0 || count > kMaxCount) return 0;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  const Unit* unit = text.empty() ? nullptr : FindUnit(text.front());
  if (unit == nullptr) return 0;
  text.remove_prefix(1);
  return count * unit->seconds;
}

// `2026-11-30` or RFC 3339.
std::optional<absl::Time> ParseDate(std::string_view text) {
  const std::string owned(text);
  absl::Time time;
  std::string ignored;
  if (absl::ParseTime(absl::RFC3339_full, owned, &time, &ignored)) return time;
  if (absl::ParseTime("%Y-%m-%d", owned, absl::UTCTimeZone(), &time, &ignored)) return time;
  return std::nullopt;
}

struct NamedZone {
  absl::TimeZone zone;
  std::string name;
};

NamedZone ZoneNamed(const std::string& name) {
  absl::TimeZone zone;
  if (absl::LoadTimeZone(name, &zone)) return {zone, name};
  return {absl::UTCTimeZone(), "UTC"};
}

std::string Clock(absl::Time time, absl::TimeZone zone, std::string_view day_format) {
  return absl::FormatTime(fmt::format("%a {} %b %H:%M", day_format), time, zone);
}

// The day without the blank that %e has in front of a single digit.
std::string PlainClock(absl::Time time, absl::TimeZone zone) {
  return Clock(time, zone, std::to_string(absl::ToCivilDay(time, zone).day()));
}

std::string HereText(absl::Time time, absl::TimeZone zone) {
  const absl::TimeZone here = absl::LocalTimeZone();
  if (here.At(time).offset == zone.At(time).offset) return "";
  if (absl::ToCivilDay(time, here) == absl::ToCivilDay(time, zone)) {
    return absl::FormatTime("%H:%M here, ", time, here);
  }
  return PlainClock(time, here) + " here, ";
}

}  // namespace

absl::Time FromProto(const google::protobuf::Timestamp& timestamp) {
  return absl::FromUnixSeconds(timestamp.seconds()) + absl::Nanoseconds(timestamp.nanos());
}

absl::Duration FromProto(const google::protobuf::Duration& duration) {
  return absl::Seconds(duration.seconds()) + absl::Nanoseconds(duration.nanos());
}

google::protobuf::Timestamp ToProto(absl::Time time) {
  google::protobuf::Timestamp timestamp;
  timestamp.set_seconds(absl::ToUnixSeconds(time));
  timestamp.set_nanos(static_cast<int32_t>((time - absl::FromUnixSeconds(timestamp.seconds())) / absl::Nanoseconds(1)));
  return timestamp;
}

google::protobuf::Duration ToProto(absl::Duration duration) {
  google::protobuf::Duration proto;
  proto.set_seconds(duration / absl::Seconds(1));
  proto.set_nanos(static_cast<int32_t>((duration - absl::Seconds(proto.seconds())) / absl::Nanoseconds(1)));
  return proto;
}

std::string Rfc3339(absl::Time time) { return absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", time, absl::UTCTimeZone()); }

std::string ShortDuration(absl::Duration duration) {
  int64_t seconds = duration / absl::Seconds(1);
  if (seconds <= 0) return "0s";
  for (size_t i = 0; i < kUnits.size(); ++i) {
    const int64_t count = seconds / kUnits[i].seconds;
    if (count == 0) continue;
    std::string text = fmt::format("{}{}", count, kUnits[i].name);
    // Seconds beside minutes, or minutes beside days, would only be noise.
    if (i + 2 < kUnits.size()) {
      const int64_t rest = seconds % kUnits[i].seconds / kUnits[i + 1].seconds;
      if (rest > 0) text += fmt::format("{}{}", rest, kUnits[i + 1].name);
    }
    return text;
  }
  return "0s";
}

std::string RelativeTime(absl::Time time, absl::Time now) {
  const absl::Duration difference = now - time;
  if (difference >= absl::Seconds(1)) return ShortDuration(difference) + " ago";
  if (difference <= -absl::Seconds(1)) return "in " + ShortDuration(-difference);
  return "now";
}

std::string Moment(const google::protobuf::Timestamp& timestamp, absl::Time now) {
  const absl::Time time = FromProto(timestamp);
  return fmt::format("{} ({})", Rfc3339(time), RelativeTime(time, now));
}

std::string ZonedTime(absl::Time time, const std::string& zone, absl::Time now) {
  const NamedZone there = ZoneNamed(zone);
  return fmt::format("{} {} ({}{})", PlainClock(time, there.zone), there.name, HereText(time, there.zone),
                     RelativeTime(time, now));
}

std::string ClockText(absl::Time time, const std::string& zone) { return Clock(time, ZoneNamed(zone).zone, "%e"); }

std::string GpuSeconds(int64_t gpu_ms) {
  const std::string_view sign = gpu_ms < 0 ? "-" : "";
  const uint64_t magnitude = gpu_ms < 0 ? 0 - static_cast<uint64_t>(gpu_ms) : static_cast<uint64_t>(gpu_ms);
  return fmt::format("{}{}.{:03}", sign, magnitude / 1000, magnitude % 1000);
}

std::string GpuTime(int64_t gpu_ms) {
  if (gpu_ms < 60'000) return fmt::format("{:.1f}s", static_cast<double>(gpu_ms) / 1000.0);
  return ShortDuration(absl::Milliseconds(gpu_ms));
}

absl::StatusOr<absl::Duration> ParseTimeSpan(std::string_view text, std::string_view what) {
  std::string_view rest = text;
  int64_t seconds = 0;
  while (!rest.empty()) {
    const int64_t term = TakeTerm(rest);
    if (term <= 0) {
      seconds = 0;
      break;
    }
    seconds += term;
  }
  if (seconds <= 0)
    return InvalidArgument("{} {}: not a time; write it with its unit, as in 90s, 45m, 2h30m or 2d", what, text);
  return absl::Seconds(seconds);
}

absl::StatusOr<absl::Time> ParseInstant(std::string_view text, std::string_view what, absl::Time now) {
  if (const auto date = ParseDate(text)) return *date;
  const absl::StatusOr<absl::Duration> span = ParseTimeSpan(text, what);
  if (span.ok()) return now - *span;
  return InvalidArgument("{} {}: not a time; write a day (2026-11-30, UTC), RFC 3339, or how long ago (36h, 7d)", what,
                         text);
}

absl::StatusOr<absl::Time> ParseFutureInstant(std::string_view text, std::string_view what, absl::Time now) {
  if (const auto date = ParseDate(text)) return *date;
  const absl::StatusOr<absl::Duration> span = ParseTimeSpan(text, what);
  if (span.ok()) return now + *span;
  return InvalidArgument("{} {}: not a time; write a day (2026-11-30, UTC), RFC 3339, or how long from now (36h, 7d)",
                         what, text);
}

}  // namespace tp::cli
