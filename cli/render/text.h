// Text that others wrote, made safe for a terminal, and its width there. Pure, but for the locale.
#pragma once

#include <string>
#include <string_view>
#include <vector>

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

// As lines of at most `columns`, broken at blanks, and inside of a word only where it is longer than that;
// 0: one line. At least one line.
std::vector<std::string> WrapWidth(std::string_view utf8, int columns);

}  // namespace tp::cli
