// `backends` of tpd.yaml: how tpd reaches the engines that are not this machine itself. A reload keeps what a start
// read.
#pragma once

#include <cstdint>
#include <string>

#include "decode/type.h"

namespace tp::config {

struct DockerEngine {
  std::string host = "unix:///var/run/docker.sock";  // or tcp://HOST:PORT, with TLS where the three files are named
  std::string tls_ca;
  std::string tls_cert;
  std::string tls_key;
  bool operator==(const DockerEngine&) const = default;
};

enum class NodeStorage : uint8_t {
  kShared,  // storage.root is mounted on every machine
  kCopied,  // every machine has its own directory of that name; jobs' files are copied there and back
};

struct NodeAccess {
  std::string user;  // empty: tpd's own
  int port = 22;
  std::string identity_file;  // empty: what ssh tries by itself
  std::string known_hosts;    // host keys are never learned: without this file no host is known
  std::string ssh_config;     // more options for ssh, as in ssh_config(5)
  NodeStorage storage = NodeStorage::kShared;
  bool operator==(const NodeAccess&) const = default;
};

struct Engines {
  DockerEngine docker;
  NodeAccess node;
  bool operator==(const Engines&) const = default;
};

decode::Type<decode::Located<Engines>> EnginesType();

void CheckEngines(const decode::Located<Engines>& engines, decode::Problems& problems);

}  // namespace tp::config
