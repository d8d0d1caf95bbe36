// Framework overrides as text, for TP_OVERRIDES_<FRAMEWORK>.
//
// The result is a line of words as a POSIX shell quotes them: `eval`, `xargs` and Python's shlex.split
// take it apart; where no value needs quotes, so does `$TP_OVERRIDES_X` without quotes around it.
//   argparse  --a.b=1 --list x y --flag --no-other   true is the flag, false its --no- form, null nothing
//   hydra     a.b=1 list=[x,y] flag=true other=null  Hydra's override grammar
//   env       A=1 B=text                             variables: one level, scalars only
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "absl/status/statusor.h"
#include "core/registry.h"

namespace tp::config {

// `overrides` is an object. INVALID_ARGUMENT names the key that the style cannot say.
absl::StatusOr<std::string> OverrideText(core::OverrideStyle style, const nlohmann::json& overrides);

}  // namespace tp::config
