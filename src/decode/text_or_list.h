// One text, or a list of them: a command, profiles.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "decode/type.h"

namespace tp::decode {

// A line for sh -c, or a list of words.
Type<std::vector<std::string>> Command();

// A profile, or a list of them, each as in --profile.
Type<std::vector<std::string>> ProfileFlags();

}  // namespace tp::decode
