#include "core/state.h"

namespace tp::core {

std::optional<JobState> ParseJobState(std::string_view name) {
  for (size_t i = 0; i < kStateTraits.size(); ++i) {
    if (kStateTraits[i].name == name) return static_cast<JobState>(i);
  }
  return std::nullopt;
}

std::optional<FailureKind> ParseFailureKind(std::string_view name) {
  for (size_t i = 0; i < kFailureTraits.size(); ++i) {
    if (kFailureTraits[i].name == name) return static_cast<FailureKind>(i);
  }
  return std::nullopt;
}

void PauseHolders::Add(Holder holder) {
  switch (holder) {
    case Holder::kOwner:
      owner = true;
      return;
    case Holder::kAdmin:
      admin = true;
      return;
    case Holder::kWindow:
      window = true;
      return;
  }
}

void PauseHolders::Lift(Holder by) {
  switch (by) {
    case Holder::kOwner:
      owner = false;
      window = false;
      return;
    case Holder::kAdmin:
      *this = {};
      return;
    case Holder::kWindow:
      window = false;
      return;
  }
}

}  // namespace tp::core
