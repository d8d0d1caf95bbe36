#include "cli/contexts.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/near_miss.h"
#include "base/status.h"
#include "cli/discovery.h"
#include "cli/variable.h"

namespace tp::cli {
namespace {

constexpr size_t kMaxContextBytes = 256 * 1024;
constexpr size_t kMaxName = 63;
constexpr mode_t kOwnerOnly = 0600;

// The directory of `path`, made for its owner only where it is missing, and the name in it.
absl::StatusOr<Directory> ParentOf(const std::filesystem::path& path) {
  const std::filesystem::path parent = path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
  std::error_code error;
  if (std::filesystem::create_directories(parent, error)) {
    std::filesystem::permissions(parent, std::filesystem::perms::owner_all, error);
  }
  if (error) return InvalidArgument("cannot make {}: {}", parent.string(), error.message());
  return OpenDirectory(parent.string());
}

absl::Status WriteOwnersFile(const std::string& path, std::string_view content) {
  TP_ASSIGN_OR_RETURN(const Directory directory, ParentOf(path));
  return ReplaceFile(directory, std::filesystem::path(path).filename().string(), content, kOwnerOnly, Sync::kNone);
}

absl::Status Malformed(const std::string& path, std::string_view what) {
  return InvalidArgument("{}: {}; correct it, or remove it and add the contexts again (tp context add)", path, what);
}

std::string Text(const nlohmann::json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

absl::StatusOr<Contexts> Parse(const std::string& path, const std::string& content) {
  const auto json = nlohmann::json::parse(content, nullptr, false);
  if (!json.is_object()) return Malformed(path, "not a JSON object");
  Contexts contexts;
  contexts.current = Text(json, "current");
  const auto servers = json.find("contexts");
  if (servers == json.end()) return contexts;
  if (!servers->is_object()) return Malformed(path, "\"contexts\" is not an object");
  for (const auto& [name, server] : servers->items()) {
    if (!server.is_object() || Text(server, "server").empty()) {
      return Malformed(path, fmt::format("context {} has no \"server\"", name));
    }
    contexts.servers[name] = {Text(server, "server"), Text(server, "token_file"), Text(server, "ca_file")};
  }
  return contexts;
}

}  // namespace

std::string ContextsFile() {
  if (std::string named = Variable("TP_CONFIG"); !named.empty()) return named;
  const std::string config = Variable("XDG_CONFIG_HOME");
  return (config.empty() ? HomeDirectory() + "/.config" : config) + "/tp/config.json";
}

absl::StatusOr<Contexts> LoadContexts(const std::string& path) {
  const std::filesystem::path file(path);
  const auto directory = OpenDirectory(file.has_parent_path() ? file.parent_path().string() : ".");
  if (absl::IsNotFound(directory.status())) return Contexts();
  TP_RETURN_IF_ERROR(directory.status());
  TP_ASSIGN_OR_RETURN(const auto content, ReadSmallFile(*directory, file.filename().string(), kMaxContextBytes));
  return content ? Parse(path, *content) : Contexts();
}

absl::Status SaveContexts(const std::string& path, const Contexts& contexts) {
  nlohmann::ordered_json json;
  json["current"] = contexts.current;
  json["contexts"] = nlohmann::ordered_json::object();
  for (const auto& [name, server] : contexts.servers) {
    json["contexts"][name] = {
        {"server", server.address}, {"token_file", server.token_file}, {"ca_file", server.ca_file}};
  }
  return WriteOwnersFile(path, json.dump(2) + "\n");
}

absl::StatusOr<NamedServer> FindContext(const Contexts& contexts, const std::string& name) {
  const auto found = contexts.servers.find(name);
  if (found != contexts.servers.end()) return found->second;
  std::vector<std::string> names;
  names.reserve(contexts.servers.size());
  for (const auto& [known, server] : contexts.servers) names.push_back(known);
  const auto meant = NearMiss(name, names);
  return NotFound(
      "there is no context {}{}", name,
      meant ? fmt::format("; did you mean {}?", *meant) : ": tp context ls lists them, tp context add adds one");
}

absl::Status CheckContextName(std::string_view name) {
  const auto good = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '_' || c == '-';
  };
  if (!name.empty() && name.size() <= kMaxName && name.front() != '.' && std::all_of(name.begin(), name.end(), good)) {
    return absl::OkStatus();
  }
  return InvalidArgument("context name {}: 1 to {} letters, digits, '.', '_' or '-', no '.' in front", name, kMaxName);
}

absl::StatusOr<std::string> StoreToken(const std::string& contexts_file, const std::string& name,
                                       std::string_view token) {
  const std::filesystem::path directory = std::filesystem::path(contexts_file).parent_path() / "tokens";
  std::string path = std::filesystem::absolute(directory / name).string();
  TP_RETURN_IF_ERROR(WriteOwnersFile(path, std::string(token) + "\n"));
  return path;
}

}  // namespace tp::cli
