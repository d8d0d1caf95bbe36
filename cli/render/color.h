// Colours, as few as help: states and headers. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tp/v1/run.pb.h"

namespace tp::cli {

enum class Color : uint8_t { kNone, kBold, kDim, kGreen, kYellow, kRed, kBlue };

// `text` in that colour, or as it is where `enabled` is false.
std::string Paint(std::string_view text, Color color, bool enabled);

Color ColorOf(v1::RunState state);
Color ColorOf(v1::JobState state);

}  // namespace tp::cli
