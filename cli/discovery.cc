#include "cli/discovery.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "base/fd.h"
#include "base/status.h"
#include "cli/contexts.h"
#include "cli/variable.h"

namespace tp::cli {
namespace {

constexpr size_t kMaxFileBytes = 64 * 1024;
constexpr const char* kDefaultCaFile = "/etc/ssl/certs/ca-certificates.crt";

absl::Status FileError(const std::string& path, int error) {
  const char* reason = std::strerror(error);
  if (error == ENOENT) return NotFound("{}: {}", path, reason);
  if (error == EACCES) return Error(absl::StatusCode::kPermissionDenied, "{}: {}", path, reason);
  return InvalidArgument("{}: {}", path, reason);
}

absl::StatusOr<UniqueFd> OpenFile(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd.valid()) return FileError(path, errno);
  return fd;
}

absl::StatusOr<std::string> ReadSmallFile(const UniqueFd& fd, const std::string& path) {
  std::string content(kMaxFileBytes + 1, '\0');
  size_t used = 0;
  while (used < content.size()) {
    const ssize_t got = ::read(fd.get(), content.data() + used, content.size() - used);
    if (got < 0) return FileError(path, errno);
    if (got == 0) break;
    used += static_cast<size_t>(got);
  }
  if (used > kMaxFileBytes) return InvalidArgument("{}: larger than {} bytes; not a file of tp's", path, kMaxFileBytes);
  content.resize(used);
  return content;
}

std::string_view Trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return "";
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

// What tpd leaves for the clients of its machine.
struct LocalServer {
  std::string address;
  std::string token_file;
};

absl::StatusOr<LocalServer> ReadLocalServer(const std::string& data_dir) {
  const std::string path = data_dir + "/client.json";
  TP_ASSIGN_OR_RETURN(const UniqueFd fd, OpenFile(path));
  TP_ASSIGN_OR_RETURN(const std::string content, ReadSmallFile(fd, path));
  const auto json = nlohmann::json::parse(content, nullptr, false);
  LocalServer server;
  if (json.is_object()) {
    if (const auto it = json.find("address"); it != json.end() && it->is_string()) server.address = *it;
    if (const auto it = json.find("token_file"); it != json.end() && it->is_string()) server.token_file = *it;
  }
  if (server.address.empty())
    return InvalidArgument("{}: no \"address\" in it; restart tpd to have it rewritten", path);
  if (!server.token_file.empty() && server.token_file.front() != '/') {
    server.token_file = data_dir + "/" + server.token_file;
  }
  return server;
}

// A name such as 127.example.org is none.
bool IsLoopbackIpv4(std::string_view host) {
  return host.substr(0, 4) == "127." &&
         std::all_of(host.begin(), host.end(), [](char c) { return (c >= '0' && c <= '9') || c == '.'; });
}

bool IsThisMachine(std::string_view target) {
  if (target.substr(0, 5) == "unix:") return true;
  const size_t colon = target.rfind(':');
  const std::string_view host = target.substr(0, colon);
  return host == "localhost" || host == "[::1]" || IsLoopbackIpv4(host);
}

bool HasPort(std::string_view target) {
  const size_t colon = target.rfind(':');
  if (colon == std::string_view::npos || colon == 0 || colon + 1 == target.size()) return false;
  const std::string_view port = target.substr(colon + 1);
  return port.size() <= 5 && std::all_of(port.begin(), port.end(), [](char c) { return c >= '0' && c <= '9'; });
}

bool TakePrefix(std::string_view& text, std::string_view prefix) {
  if (text.substr(0, prefix.size()) != prefix) return false;
  text.remove_prefix(prefix.size());
  return true;
}

// `file`: of the context, or of the tpd of this machine where it is that one.
absl::StatusOr<std::string> FindToken(const std::string& file) {
  if (const std::string token = Variable("TP_TOKEN"); !token.empty()) return CheckToken(token, "TP_TOKEN");
  if (const std::string path = Variable("TP_TOKEN_FILE"); !path.empty()) return ReadTokenFile(path);
  return file.empty() ? absl::StatusOr<std::string>(std::string()) : ReadTokenFile(file);
}

absl::Status NoServer(const std::string& data_dir) {
  return Unavailable(
      "no server is known: {}/client.json does not exist. Start one with `tpd serve`, or name one with --server or "
      "TP_SERVER (or its data directory with TP_DATA_DIR)",
      data_dir);
}

absl::StatusOr<Endpoint> EndpointOf(const NamedServer& server) {
  TP_ASSIGN_OR_RETURN(Endpoint endpoint, ParseAddress(server.address));
  if (endpoint.tls && !server.ca_file.empty() && Variable("TP_CA_FILE").empty()) endpoint.ca_file = server.ca_file;
  TP_ASSIGN_OR_RETURN(endpoint.token, FindToken(server.token_file));
  return endpoint;
}

// The token of the tpd here is for no other server.
absl::StatusOr<Endpoint> EndpointAt(const std::string& address) {
  const absl::StatusOr<LocalServer> local = ReadLocalServer(DataDirectory());
  const bool is_local = local.ok() && local->address == address;
  return EndpointOf({.address = address, .token_file = is_local ? local->token_file : "", .ca_file = ""});
}

absl::StatusOr<Endpoint> LocalEndpoint() {
  const std::string data_dir = DataDirectory();
  const absl::StatusOr<LocalServer> local = ReadLocalServer(data_dir);
  if (absl::IsNotFound(local.status())) return NoServer(data_dir);
  TP_RETURN_IF_ERROR(local.status());
  return EndpointOf({.address = local->address, .token_file = local->token_file, .ca_file = ""});
}

absl::StatusOr<Endpoint> EndpointOfContext(const Contexts& contexts, const std::string& name) {
  TP_ASSIGN_OR_RETURN(const NamedServer server, FindContext(contexts, name));
  return EndpointOf(server);
}

}  // namespace

std::string HomeDirectory() {
  std::string home = Variable("HOME");
  if (!home.empty()) return home;
  const passwd* entry = ::getpwuid(::geteuid());
  return entry == nullptr ? "/" : entry->pw_dir;
}

std::string DataDirectory() {
  if (std::string named = Variable("TP_DATA_DIR"); !named.empty()) return named;
  return ::geteuid() == 0 ? "/var/lib/tp" : HomeDirectory() + "/.local/share/tp";
}

absl::StatusOr<std::string> CheckToken(std::string_view text, std::string_view source) {
  const std::string_view token = Trimmed(text);
  const bool printable = std::all_of(token.begin(), token.end(), [](char c) { return c > ' ' && c < '\x7f'; });
  if (token.empty() || !printable) return InvalidArgument("{} holds no token: one line tp_... is expected", source);
  return std::string(token);
}

absl::StatusOr<std::string> ReadTokenFile(const std::string& path) {
  TP_ASSIGN_OR_RETURN(const UniqueFd fd, OpenFile(path));
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return FileError(path, errno);
  if (!S_ISREG(info.st_mode)) return InvalidArgument("{}: not a regular file; a token file is expected", path);
  if ((info.st_mode & 077) != 0) {
    return Error(absl::StatusCode::kPermissionDenied,
                 "{} is open to others (mode {:04o}): the token may be known. Replace the token, then: chmod 600 {}",
                 path, info.st_mode & 07777, path);
  }
  TP_ASSIGN_OR_RETURN(const std::string content, ReadSmallFile(fd, path));
  return CheckToken(content, path);
}

absl::StatusOr<Endpoint> ParseAddress(std::string_view address) {
  Endpoint endpoint;
  std::string_view rest = address;
  endpoint.tls = TakePrefix(rest, "https://");
  if (!endpoint.tls) TakePrefix(rest, "http://");
  if (!rest.empty() && rest.back() == '/') rest.remove_suffix(1);
  endpoint.target = std::string(rest);
  if (rest.substr(0, 5) != "unix:" && !HasPort(rest)) {
    return InvalidArgument("server address {}: write host:port, https://host:port or unix:/path", address);
  }
  if (!endpoint.tls && !IsThisMachine(rest)) {
    return InvalidArgument(
        "server address {}: without TLS the token would travel in clear; write https://{}, or tunnel to a port of "
        "this machine",
        address, rest);
  }
  if (endpoint.tls) {
    endpoint.ca_file = Variable("TP_CA_FILE");
    if (endpoint.ca_file.empty()) endpoint.ca_file = kDefaultCaFile;
  }
  return endpoint;
}

absl::StatusOr<Endpoint> FindServer(const ServerFlags& flags) {
  if (!flags.server.empty() && !flags.context.empty()) {
    return InvalidArgument("--server and --context both name a server: leave one out");
  }
  if (!flags.server.empty()) return EndpointAt(flags.server);
  const std::string server = Variable("TP_SERVER");
  if (flags.context.empty() && !server.empty()) return EndpointAt(server);
  const std::string named = flags.context.empty() ? Variable("TP_CONTEXT") : flags.context;
  TP_ASSIGN_OR_RETURN(const Contexts contexts, LoadContexts(ContextsFile()));
  if (!named.empty()) return EndpointOfContext(contexts, named);
  return contexts.current.empty() ? LocalEndpoint() : EndpointOfContext(contexts, contexts.current);
}

}  // namespace tp::cli
