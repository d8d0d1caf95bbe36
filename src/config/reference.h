// The reference page of the configuration files, from the descriptions that decode them.
#pragma once

#include <string>

namespace tp::config {

// Markdown; docs/configuration-reference.md is this text, which a test compares.
std::string ReferencePage();

}  // namespace tp::config
