#include <algorithm>
#include <string_view>

#include "base/printable.h"
#include "base/status.h"
#include "core/resource.h"

namespace tp::core {
namespace {

bool IsVariableName(std::string_view name) {
  const auto is_letter = [](char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_'; };
  const auto is_rest = [&](char c) { return is_letter(c) || (c >= '0' && c <= '9'); };
  return !name.empty() && is_letter(name[0]) && std::all_of(name.begin(), name.end(), is_rest);
}

void AddOnce(std::vector<std::string>* notes, std::string note) {
  if (notes == nullptr || std::find(notes->begin(), notes->end(), note) != notes->end()) return;
  notes->push_back(std::move(note));
}

// Puts `layer` over `env` and tells of each name that had another value.
template <typename OnReplaced>
void Overlay(std::map<std::string, std::string>& env, const std::map<std::string, std::string>& layer,
             OnReplaced on_replaced) {
  for (const auto& [name, value] : layer) {
    const auto [entry, added] = env.try_emplace(name, value);
    if (added || entry->second == value) continue;
    on_replaced(name);
    entry->second = value;
  }
}

bool Gives(const std::map<std::string, std::string>& layer, const std::string& name, const std::string& value) {
  const auto found = layer.find(name);
  return found != layer.end() && found->second == value;
}

// Of a value that the pool brings: its shape's entry holds the profile's values too.
EnvOrigin OriginInPool(const Registry& registry, const PoolShape& pool, const std::string& name,
                       const std::string& value) {
  const auto profile = registry.profiles.find(pool.profile);
  if (profile == registry.profiles.end()) return EnvOrigin::kSeries;
  if (Gives(profile->second.base.env, name, value)) return EnvOrigin::kProfile;
  const auto shape = profile->second.shapes.find(pool.gpus_per_node == 0 ? pool.nodes : pool.cards());
  const bool of_shape = shape != profile->second.shapes.end() && Gives(shape->second.env, name, value);
  return of_shape ? EnvOrigin::kShape : EnvOrigin::kSeries;
}

EnvOrigin OriginOf(const Registry& registry, const StepSpec& spec, const PoolShape& pool, const std::string& name,
                   const std::string& value) {
  if (pool.locked_env.contains(name)) return EnvOrigin::kLocked;
  if (spec.explicit_env.contains(name)) return EnvOrigin::kCommandLine;
  if (!pool.env.contains(name)) return EnvOrigin::kProjectFile;
  return OriginInPool(registry, pool, name, value);
}

}  // namespace

absl::Status CheckVariable(std::string_view name, std::string_view value) {
  if (!IsVariableName(name)) {
    return InvalidArgument("{} is not a variable's name: write letters, digits and _, no digit first", Quoted(name));
  }
  if (name.size() + 1 + value.size() > kMaxVariableBytes) {
    return InvalidArgument("{} is {} bytes long, and the kernel takes at most {}: put it into a file", Quoted(name),
                           name.size() + 1 + value.size(), kMaxVariableBytes);
  }
  if (name.substr(0, 3) == "TP_") return InvalidArgument("{}: names that begin with TP_ belong to tp", name);
  if (name == "CUDA_VISIBLE_DEVICES") {
    return InvalidArgument("{} is set by tp to the cards that the job gets; to use fewer, set it inside the command",
                           name);
  }
  if (name == "CUDA_DEVICE_ORDER") {
    return InvalidArgument(
        "{} is set by tp, whose numbers of cards are those of nvidia-smi; to use another order, set "
        "it inside the command",
        name);
  }
  if (value.find('\0') != std::string_view::npos) {
    return InvalidArgument("{}: the value holds a NUL byte, which no environment can", name);
  }
  return absl::OkStatus();
}

absl::Status CheckUserEnv(const std::map<std::string, std::string>& env, std::string_view origin) {
  for (const auto& [name, value] : env) {
    if (const absl::Status status = CheckVariable(name, value); !status.ok()) {
      return InvalidArgument("{}: {}", origin, Message(status));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::map<std::string, std::string>> MergeEnv(const StepSpec& spec, const PoolShape& pool,
                                                            std::vector<std::string>* notes) {
  for (const auto& [name, value] : spec.explicit_env) {
    const auto locked = pool.locked_env.find(name);
    if (locked != pool.locked_env.end() && locked->second != value) {
      return InvalidArgument("--env {}: series {} locks this variable; leave it out", name, pool.series);
    }
  }
  std::map<std::string, std::string> env = spec.env;
  Overlay(env, pool.env, [&](const std::string& name) {
    if (pool.locked_env.contains(name)) return;
    AddOnce(notes, fmt::format("{}: profile {} replaces the value from tp.yaml", name, pool.profile));
  });
  Overlay(env, spec.explicit_env, [&](const std::string& name) {
    const bool of_pool = pool.env.contains(name);
    AddOnce(notes, of_pool ? fmt::format("{}: --env replaces the value of profile {}", name, pool.profile)
                           : fmt::format("{}: --env replaces the value from tp.yaml", name));
  });
  Overlay(env, pool.locked_env, [&](const std::string& name) {
    if (!spec.env.contains(name)) return;
    AddOnce(notes,
            fmt::format("{}: series {} locks this variable and replaces the value from tp.yaml", name, pool.series));
  });
  return env;
}

absl::StatusOr<std::map<std::string, OriginatedValue>> ExplainEnv(const Registry& registry, const StepSpec& spec,
                                                                  const PoolShape& pool) {
  TP_ASSIGN_OR_RETURN(const auto merged, MergeEnv(spec, pool, nullptr));
  std::map<std::string, OriginatedValue> explained;
  for (const auto& [name, value] : merged) explained[name] = {value, OriginOf(registry, spec, pool, name, value)};
  return explained;
}

}  // namespace tp::core
