#include "cli/render/color.h"

namespace tp::cli {
namespace {

std::string_view Sequence(Color color) {
  switch (color) {
    case Color::kNone:
      return "";
    case Color::kBold:
      return "\x1b[1m";
    case Color::kDim:
      return "\x1b[2m";
    case Color::kGreen:
      return "\x1b[32m";
    case Color::kYellow:
      return "\x1b[33m";
    case Color::kRed:
      return "\x1b[31m";
    case Color::kBlue:
      return "\x1b[34m";
  }
  return "";
}

}  // namespace

std::string Paint(std::string_view text, Color color, bool enabled) {
  if (!enabled || color == Color::kNone) return std::string(text);
  std::string painted(Sequence(color));
  painted += text;
  painted += "\x1b[0m";
  return painted;
}

Color ColorOf(v1::RunState state) {
  switch (state) {
    case v1::RUN_STATE_RUNNING:
      return Color::kBlue;
    case v1::RUN_STATE_SUCCEEDED:
      return Color::kGreen;
    case v1::RUN_STATE_FAILED:
    case v1::RUN_STATE_PARTIAL:
      return Color::kRed;
    case v1::RUN_STATE_PAUSED:
    case v1::RUN_STATE_STOPPED:
      return Color::kYellow;
    default:  // waiting states, and those of a newer server
      return Color::kNone;
  }
}

Color ColorOf(v1::JobState state) {
  switch (state) {
    case v1::JOB_STATE_RUNNING:
      return Color::kBlue;
    case v1::JOB_STATE_SUCCEEDED:
      return Color::kGreen;
    case v1::JOB_STATE_FAILED:
      return Color::kRed;
    case v1::JOB_STATE_PAUSED:
    case v1::JOB_STATE_STOPPED:
      return Color::kYellow;
    default:  // waiting states, and those of a newer server
      return Color::kNone;
  }
}

}  // namespace tp::cli
