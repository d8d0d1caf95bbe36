// The words by which enumerations are stored, in columns and in JSON. They are part of the file format:
// a display name may change, a word here may not. Pure.
#pragma once

#include <optional>
#include <string_view>

#include "core/run.h"
#include "core/step.h"
#include "store/rows.h"

namespace tp::store {

// An empty word for a value that the enumeration does not have.
std::string_view Word(core::JobState value);
std::string_view Word(core::RunWord value);
std::string_view Word(core::FailureKind value);
std::string_view Word(core::AfterWhen value);
std::string_view Word(core::NoticeEvent value);
std::string_view Word(core::MarkKind value);
std::string_view Word(core::Handover value);
std::string_view Word(core::EndCause value);
std::string_view Word(core::SignalSent value);
std::string_view Word(core::FenceState value);
std::string_view Word(Claim value);
std::string_view Word(Tree value);
std::string_view Word(EngineEnd value);
std::string_view Word(ExitKind value);
std::string_view Word(SignalledBy value);
std::string_view Word(StopLevel value);
std::string_view Word(OutboxKind value);
std::string_view Word(Role value);

template <typename E>
std::optional<E> FromWord(std::string_view word) {
  for (int i = 0;; ++i) {
    const E value = static_cast<E>(i);
    const std::string_view name = Word(value);
    if (name.empty()) return std::nullopt;
    if (name == word) return value;
  }
}

}  // namespace tp::store
