#include "cli/secrets.h"

#include <string>

#include <google/protobuf/map.h>

#include "base/secret_names.h"

namespace tp::cli {
namespace {

void MaskMap(google::protobuf::Map<std::string, std::string>& environment) {
  for (auto& [name, value] : environment) {
    if (LooksSecret(name, value)) value = kMaskedValue;
  }
}

}  // namespace

void MaskSecrets(v1::Run& run) {
  for (v1::Step& step : *run.mutable_steps()) {
    MaskMap(*step.mutable_spec()->mutable_env());
    MaskMap(*step.mutable_spec()->mutable_explicit_env());
  }
}

}  // namespace tp::cli
