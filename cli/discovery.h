// Which server, and with which token: --server, TP_SERVER, else the tpd of this machine by its
// `<data>/client.json`. Blocking file I/O.
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

// $TP_DATA_DIR, else /var/lib/tp for root and ~/.local/share/tp for everyone else.
std::string DataDirectory();

// UNAVAILABLE: no server is known. PERMISSION_DENIED: a file is closed to us, or a token file open to
// others. INVALID_ARGUMENT: an address or file that makes no sense.
absl::StatusOr<Endpoint> FindServer(std::string_view server_flag);

// `host:port`, `unix:/path`, `http://host:port` or `https://host:port`. A token never travels in clear:
// without TLS only this machine is accepted.
absl::StatusOr<Endpoint> ParseAddress(std::string_view address);

// The token in a file that only its owner may read.
absl::StatusOr<std::string> ReadTokenFile(const std::string& path);

}  // namespace tp::cli
