#include <nlohmann/json.hpp>

#include "base/secret_names.h"
#include "launch/attempt_dir.h"

namespace tp::launch {
namespace {

nlohmann::ordered_json MaskedEnv(const std::map<std::string, std::string>& env) {
  nlohmann::ordered_json masked = nlohmann::ordered_json::object();
  for (const auto& [name, value] : env) masked[name] = LooksSecret(name, value) ? std::string(kMaskedValue) : value;
  return masked;
}

nlohmann::ordered_json RankJson(const RankLaunch& rank) {
  return {
      {"pool", rank.pool},
      {"rank", rank.rank},
      {"node", rank.placement.node},
      {"address", rank.placement.address},
      {"cards", rank.placement.cards},
      {"env", MaskedEnv(rank.env)},
  };
}

}  // namespace

std::string RenderSpecJson(const LaunchSpec& spec) {
  nlohmann::ordered_json json = {
      {"key", spec.key},
      {"nonce", spec.nonce},
      {"owner", spec.owner},
      {"run_id", spec.run_id},
      {"step", spec.step_name},
      {"attempt", spec.attempt},
      {"executor", spec.executor},
      {"image", spec.image},
      {"snapshot_id", spec.snapshot_id},
      {"argv", spec.argv},
      {"log_max_bytes", spec.log_max_bytes},
      {"heartbeat_ms", spec.heartbeat_ms},
      {"ranks", nlohmann::ordered_json::array()},
  };
  for (const RankLaunch& rank : spec.ranks) json["ranks"].push_back(RankJson(rank));
  // A job's arguments and environment may be any bytes.
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace tp::launch
