// Times and durations as people and programs read them. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "google/protobuf/duration.pb.h"
#include "google/protobuf/timestamp.pb.h"

namespace tp::cli {

absl::Time FromProto(const google::protobuf::Timestamp& timestamp);
absl::Duration FromProto(const google::protobuf::Duration& duration);
google::protobuf::Timestamp ToProto(absl::Time time);
google::protobuf::Duration ToProto(absl::Duration duration);

// `2026-11-30T08:00:12.345Z`
std::string Rfc3339(absl::Time time);

// The two largest units at most: `45s`, `12m`, `3h20m`, `2d4h`.
std::string ShortDuration(absl::Duration duration);

// `3m ago`, `in 5m`, `now`.
std::string RelativeTime(absl::Time time, absl::Time now);

// `2026-11-30T08:00:12.345Z (3m ago)`
std::string Moment(const google::protobuf::Timestamp& timestamp, absl::Time now);

// `Tue 1 Dec 07:00 Europe/Berlin (06:00 here, in 3h)`: in that zone, and where it differs, in ours. In UTC
// where this machine does not know the zone.
std::string ZonedTime(absl::Time time, const std::string& zone, absl::Time now);

// `Tue  1 Dec 07:00`
std::string ClockText(absl::Time time, const std::string& zone);

// gpu_seconds, exact: `12.345`.
std::string GpuSeconds(int64_t gpu_ms);

// For tables: `12.3s` below a minute, then as ShortDuration.
std::string GpuTime(int64_t gpu_ms);

// `90s`, `2h`, `1h30m`, `2d`; a positive time with its unit. `what` names the flag in errors.
absl::StatusOr<absl::Duration> ParseTimeSpan(std::string_view text, std::string_view what);

// `2026-11-30`, RFC 3339, or a time span before now.
absl::StatusOr<absl::Time> ParseInstant(std::string_view text, std::string_view what, absl::Time now);

// The same, or a time span after now.
absl::StatusOr<absl::Time> ParseFutureInstant(std::string_view text, std::string_view what, absl::Time now);

}  // namespace tp::cli
