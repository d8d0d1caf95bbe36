#include "cli/version.h"

#include <fmt/format.h>

#include "base/status.h"

namespace tp::cli {
namespace {

std::string_view MajorMinor(std::string_view version) {
  const size_t first = version.find('.');
  if (first == std::string_view::npos) return version;
  return version.substr(0, version.find('.', first + 1));
}

}  // namespace

std::string_view ClientVersion() { return TP_VERSION; }

std::optional<std::string> VersionSkew(std::string_view client, std::string_view server) {
  if (MajorMinor(client) == MajorMinor(server)) return std::nullopt;
  return fmt::format("this is tp {}, the server is tpd {}: some calls may fail; install the matching tp", client,
                     server);
}

absl::Status WarnOfVersionSkew(const Context& context, Client& client) {
  TP_ASSIGN_OR_RETURN(const v1::GetServerInfoResponse info,
                      client.Call(&v1::SystemService::Stub::GetServerInfo, v1::GetServerInfoRequest()));
  if (const std::optional<std::string> skew = VersionSkew(ClientVersion(), info.version())) context.Say(*skew);
  return absl::OkStatus();
}

}  // namespace tp::cli
