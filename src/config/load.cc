#include "config/load.h"

#include <filesystem>
#include <fstream>
#include <system_error>

#include "base/sha256.h"
#include "base/status.h"
#include "config/executors.h"
#include "config/registry_file.h"
#include "decode/yaml_tree.h"

namespace tp::config {
namespace {

using decode::ParseYaml;
using decode::Problems;
using decode::ToStatus;
using decode::Type;
using decode::YamlValue;

template <typename T>
std::optional<T> Decode(const Type<T>& type, const SourceFile& source, Problems& problems) {
  const std::optional<YamlValue> root = ParseYaml(source.text, problems);
  T decoded{};
  if (!root || !type.decode(*root, problems, decoded) || problems.any()) return std::nullopt;
  return decoded;
}

absl::StatusOr<SourceFile> ReadSource(const std::string& directory, std::string_view name, std::string_view embedded) {
  const std::string path = fmt::format("{}/{}", directory, name);
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  if (status.type() == std::filesystem::file_type::not_found) {
    return SourceFile{.name = fmt::format("built-in {}", name), .text = std::string(embedded)};
  }
  if (error) return FailedPrecondition("cannot look at {}: {}", path, error.message());
  if (status.type() != std::filesystem::file_type::regular) return FailedPrecondition("{} is not a file", path);
  std::ifstream stream(path, std::ios::binary);
  SourceFile source;
  source.name = path;
  source.text.resize(decode::kMaxFileBytes + 1);  // one more than is accepted, so that ParseYaml refuses it
  stream.read(source.text.data(), static_cast<std::streamsize>(source.text.size()));
  source.text.resize(static_cast<size_t>(stream.gcount()));
  if (!stream.is_open() || stream.bad()) return FailedPrecondition("cannot read {}: check its permissions", path);
  return source;
}

absl::Status CheckDirectory(const std::string& directory) {
  std::error_code error;
  if (std::filesystem::is_directory(directory, error)) return absl::OkStatus();
  return NotFound("there is no configuration directory {}", directory);
}

}  // namespace

absl::StatusOr<Loaded> Load(const Sources& sources) {
  Problems server_problems(sources.server.name);
  Problems registry_problems(sources.registry.name);
  const auto server_file = Decode(ServerFileType(), sources.server, server_problems);
  const auto registry_file = Decode(RegistryFileType(), sources.registry, registry_problems);
  Loaded loaded;
  if (server_file && registry_file) {
    loaded.server = BuildServerConfig(*server_file, sources.in_kubernetes, server_problems);
    auto executors = BuildExecutors(*server_file, loaded.server.default_backend, server_problems);
    loaded.registry = BuildRegistry(*registry_file, std::move(executors), registry_problems);
    loaded.registry.quota_defaults = BuildQuotaDefaults(server_file->quotas, loaded.registry, server_problems);
    loaded.registry.receivers = BuildReceivers(server_file->notify, server_problems);
  }
  TP_RETURN_IF_ERROR(ToStatus({&server_problems, &registry_problems}));
  return loaded;
}

std::string Sources::Hash() const {
  Sha256 hash;
  for (const SourceFile* file : {&server, &registry}) hash.Update(fmt::format("{}\n{}", file->text.size(), file->text));
  return hash.HexDigest();
}

absl::StatusOr<Sources> ReadSources(const std::string& directory) {
  Sources sources;
  if (directory.empty()) {
    sources.server = {.name = "built-in tpd.yaml", .text = std::string(kEmbeddedServerFile)};
    sources.registry = {.name = "built-in registry.yaml", .text = std::string(kEmbeddedRegistryFile)};
    return sources;
  }
  TP_RETURN_IF_ERROR(CheckDirectory(directory));
  TP_ASSIGN_OR_RETURN(sources.server, ReadSource(directory, kServerFileName, kEmbeddedServerFile));
  TP_ASSIGN_OR_RETURN(sources.registry, ReadSource(directory, kRegistryFileName, kEmbeddedRegistryFile));
  return sources;
}

absl::StatusOr<Loaded> LoadDirectory(const std::string& directory, bool in_kubernetes) {
  TP_ASSIGN_OR_RETURN(Sources sources, ReadSources(directory));
  sources.in_kubernetes = in_kubernetes;
  return Load(sources);
}

}  // namespace tp::config
