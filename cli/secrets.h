// Which environment variables look like secrets. Their values are sent, never shown. Pure.
#pragma once

#include <string_view>

#include "tp/v1/run.pb.h"

namespace tp::cli {

// By the name's words (HF_TOKEN, AWS_SECRET_ACCESS_KEY; not TOKENIZERS_PARALLELISM), or by a value
// that is an address with a password in it.
bool LooksSecret(std::string_view name, std::string_view value);

// Replaces what looks secret in every step's environment by `***`.
void MaskSecrets(v1::Run& run);

}  // namespace tp::cli
