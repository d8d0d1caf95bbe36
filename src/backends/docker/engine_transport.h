// One HTTP exchange with a container engine. Implementations: curl_transport.h; an engine in memory in tests.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace tp::docker {

struct EngineRequest {
  std::string method;  // GET, POST, DELETE
  std::string path;    // from the root, query included, encoded
  std::string body;    // JSON; empty: none
};

struct EngineResponse {
  int status = 0;
  std::string body;
};

// Thread-safe.
class EngineTransport {
 public:
  virtual ~EngineTransport() = default;

  // UNAVAILABLE: no whole answer came; the engine may have carried the request out or not. The sentence says why.
  virtual absl::StatusOr<EngineResponse> Send(const EngineRequest& request, absl::Time deadline) = 0;

  // Hands over an answer line by line as it comes, until it ends, `line` gives false, or Cancel. `idle`: how long
  // nothing may come. The status is that of the exchange; HTTP's 404 is UNKNOWN, another of its errors UNAVAILABLE,
  // with the engine's words.
  virtual absl::Status Stream(const EngineRequest& request, absl::Duration idle,
                              const std::function<bool(std::string_view line)>& line) = 0;

  // Ends every exchange under way and to come.
  virtual void Cancel() = 0;
};

}  // namespace tp::docker
