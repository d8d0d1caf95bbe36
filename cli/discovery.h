// Which server, and with which token: one that was named, that of a context (cli/contexts.h), else the
// tpd of this machine by its `<data>/client.json`. Blocking file I/O.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace tp::cli {

struct Endpoint {
  std::string target;  // as gRPC reads it: `127.0.0.1:7070`, `unix:/run/tp.sock`
  bool tls = false;
  std::string ca_file;  // PEM; used with TLS
  std::string token;    // empty: none was found
};

// $HOME, else what the system knows.
std::string HomeDirectory();

// $TP_DATA_DIR, else /var/lib/tp for root and ~/.local/share/tp for everyone else.
std::string DataDirectory();

// What the user said on the command line; empty: nothing.
struct ServerFlags {
  std::string server;
  std::string context;
};

// In this order: --server, --context, TP_SERVER, TP_CONTEXT, the context in use, the tpd of this machine.
// UNAVAILABLE: no server is known. PERMISSION_DENIED: a file is closed to us, or a token file open to
// others. INVALID_ARGUMENT: an address or file that makes no sense.
absl::StatusOr<Endpoint> FindServer(const ServerFlags& flags);

// `host:port`, `unix:/path`, `http://host:port` or `https://host:port`. A token never travels in clear:
// without TLS only this machine is accepted.
absl::StatusOr<Endpoint> ParseAddress(std::string_view address);

// What a token looks like; without the blanks around it. `source` names where it comes from.
absl::StatusOr<std::string> CheckToken(std::string_view text, std::string_view source);

// The token in a file that only its owner may read.
absl::StatusOr<std::string> ReadTokenFile(const std::string& path);

}  // namespace tp::cli
