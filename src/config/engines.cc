#include "config/engines.h"

#include <optional>
#include <string_view>

#include "config/scalar_types.h"

namespace tp::config {
namespace {

using decode::Key;
using decode::Record;
using decode::Text;
using decode::Type;

constexpr std::string_view kUnix = "unix:///";
constexpr std::string_view kTcp = "tcp://";

std::optional<std::string> WrongHost(const std::string& host) {
  const bool socket = host.starts_with(kUnix) && host.size() > kUnix.size();
  const bool network = host.starts_with(kTcp) && host.size() > kTcp.size();
  if (socket || network) return std::nullopt;
  return "not an engine's address: unix:///var/run/docker.sock or tcp://gpu-1.example.org:2376";
}

// A login name goes into ssh's argument list.
std::optional<std::string> WrongUser(const std::string& user) {
  const bool good = !user.empty() && user.front() != '-' && user.find_first_of(" \t@:/") == std::string::npos;
  return good ? std::nullopt : std::optional<std::string>("not a login name");
}

Type<DockerEngine> DockerEngineType() {
  return Record<DockerEngine>(
      "backends.docker",
      {Key("host", &DockerEngine::host, Text("engine address", WrongHost, "^(unix:///|tcp://)."),
           "The engine's address."),
       Key("tls_ca", &DockerEngine::tls_ca, AbsolutePath(), "Authority that signed the engine's certificate."),
       Key("tls_cert", &DockerEngine::tls_cert, AbsolutePath(), "tpd's certificate for the engine."),
       Key("tls_key", &DockerEngine::tls_key, AbsolutePath(), "Its private key, of mode 0600.")});
}

Type<NodeAccess> NodeAccessType() {
  const auto storage =
      decode::Choice<NodeStorage>({{"shared", NodeStorage::kShared}, {"copied", NodeStorage::kCopied}});
  return Record<NodeAccess>(
      "backends.node",
      {Key("user", &NodeAccess::user, Text("login name", WrongUser, "^[^-@:/ ][^@:/ ]*$"),
           "Who logs in on the machines. Default: tpd's own user."),
       Key("port", &NodeAccess::port, decode::SmallInteger(1, 65535), "Port of their ssh."),
       Key("identity_file", &NodeAccess::identity_file, AbsolutePath(), "Private key, of mode 0600."),
       Key("known_hosts", &NodeAccess::known_hosts, AbsolutePath(),
           "Their host keys. None is learned: a machine that is not in it is not talked to."),
       Key("ssh_config", &NodeAccess::ssh_config, AbsolutePath(),
           "More options for ssh (ProxyJump, ...), as in ssh_config(5); what tpd sets itself wins."),
       Key("storage", &NodeAccess::storage, storage,
           "shared: storage.root is mounted on every machine, at the same path. copied: every machine "
           "has a directory of its own there; what a job needs is copied to it before it starts, and "
           "what it wrote is copied back before it counts as ended. Each launch proves which it is.")});
}

}  // namespace

Type<decode::Located<Engines>> EnginesType() {
  return decode::At(Record<Engines>(
      "backends", {Key("docker", &Engines::docker, DockerEngineType(), "The one docker engine."),
                   Key("node", &Engines::node, NodeAccessType(), "Machines that are reached by ssh.")}));
}

void CheckEngines(const decode::Located<Engines>& engines, decode::Problems& problems) {
  const DockerEngine& docker = engines.value.docker;
  const bool any = !docker.tls_ca.empty() || !docker.tls_cert.empty() || !docker.tls_key.empty();
  const bool all = !docker.tls_ca.empty() && !docker.tls_cert.empty() && !docker.tls_key.empty();
  if (any && !all) problems.Add(engines.at, "docker: tls_ca, tls_cert and tls_key go together");
  if (any && docker.host.starts_with(kUnix)) {
    problems.Add(engines.at, "docker: a unix socket has no TLS: leave the certificates out, or use tcp://");
  }
}

}  // namespace tp::config
