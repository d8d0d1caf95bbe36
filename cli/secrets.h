// What looks like a secret is sent, never shown. Pure.
#pragma once

#include "tp/v1/run.pb.h"

namespace tp::cli {

// Replaces what looks secret in every step's environment by kMaskedValue.
void MaskSecrets(v1::Run& run);

}  // namespace tp::cli
