// The nested parts of rows as JSON text: {"v": VERSION, "value": ...}.
//
// Byte-exact for any bytes: a string that is UTF-8 is a JSON string, any other is {"base64": "..."}.
// Maps are lists of [key, value]. Times are microseconds since 1970, durations microseconds, enumerations
// the words of store/words.h. A member that is not known is ignored, one that is missing is an error, as
// is a version above ours. DATA_LOSS; the sentence names the member. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "core/quota.h"
#include "core/step.h"
#include "tp/attempt.h"

namespace tp::store {

inline constexpr int kCodecVersion = 1;

// Of StepSpec, vector<Notice>, vector<PastAttempt>, ResolvedShape, vector<PoolPlacement>, vector<RankObservation>,
// Meter, Ending, Sight, AttemptTarget and QuotaLimits; Decode also of vector<string>.
template <typename T>
std::string Encode(const T& value);

template <typename T>
absl::StatusOr<T> Decode(std::string_view json);

}  // namespace tp::store
