#include "cli/version_skew.h"

#include <fmt/format.h>

#include "base/status.h"

namespace tp::cli {

std::optional<std::string> VersionSkew(std::string_view client, std::string_view server) {
  if (MajorMinor(client) == MajorMinor(server)) return std::nullopt;
  return fmt::format("this is tp {}, the server is tpd {}: some calls may fail; {}", client, server,
                     IsOlder(server, client) ? "have tpd upgraded, or install the tp of its version"
                                             : "install the tp of its version");
}

absl::StatusOr<v1::GetServerInfoResponse> WarnOfVersionSkew(const Context& context, Client& client) {
  TP_ASSIGN_OR_RETURN(v1::GetServerInfoResponse info,
                      client.Call(&v1::SystemService::Stub::GetServerInfo, v1::GetServerInfoRequest()));
  if (const std::optional<std::string> skew = VersionSkew(ClientVersion(), info.version())) context.Say(*skew);
  return info;
}

}  // namespace tp::cli
