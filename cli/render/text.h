// Text that others wrote, made safe for a terminal, and its width there. Pure, but for the locale.
#pragma once

#include <string>
#include <string_view>

namespace tp::cli {

// Widths do not depend on the user's locale. Call once, before threads.
void UseUtf8Locale();

bool IsUtf8(std::string_view text);

// One line without control characters, bidirectional overrides or broken UTF-8: those appear as
// `\n`, `\x1b`, `\u202e`. The result is valid UTF-8.
std::string EscapeControl(std::string_view text);

// In terminal columns; wide characters count two, combining ones none.
int DisplayWidth(std::string_view utf8);

// At most `columns` wide, ending in `…` where something was cut.
std::string FitWidth(std::string_view utf8, int columns);

}  // namespace tp::cli
