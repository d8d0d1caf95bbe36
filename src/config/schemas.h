// JSON Schemas (draft 2020-12) of the two files, from the decoder's descriptions, for editors.
#pragma once

#include <string>

namespace tp::config {

std::string ServerSchema();
std::string RegistrySchema();

}  // namespace tp::config
