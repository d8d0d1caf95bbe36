// HTTP to an engine through libcurl: a unix socket, or TCP with TLS.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "backends/docker/engine_transport.h"

namespace tp::docker {

struct EngineAddress {
  std::string host = "unix:///var/run/docker.sock";  // or tcp://HOST:PORT
  std::string tls_ca;                                // with the other two: TLS
  std::string tls_cert;
  std::string tls_key;
};

class CurlTransport final : public EngineTransport {
 public:
  // INVALID_ARGUMENT: no address. The engine need not be there.
  static absl::StatusOr<std::unique_ptr<CurlTransport>> Create(EngineAddress address);

  absl::StatusOr<EngineResponse> Send(const EngineRequest& request, absl::Time deadline) override;
  absl::Status Stream(const EngineRequest& request, absl::Duration idle,
                      const std::function<bool(std::string_view line)>& line) override;
  void Cancel() override { cancelled_ = true; }

 private:
  explicit CurlTransport(EngineAddress address, std::string socket, std::string base);
  struct Exchange;
  absl::Status Perform(Exchange& exchange, const EngineRequest& request) const;
  std::string WhyNot(int code, const std::string& why) const;  // `code` is libcurl's

  const EngineAddress address_;
  const std::string socket_;  // empty: TCP
  const std::string base_;    // `http://localhost`
  std::atomic<bool> cancelled_ = false;
};

}  // namespace tp::docker
