#include "backends/docker/curl_transport.h"

#include <algorithm>
#include <array>
#include <mutex>
#include <utility>

#include <curl/curl.h>
#include <fmt/format.h>

#include "absl/time/clock.h"
#include "base/status.h"

namespace tp::docker {
namespace {

constexpr std::string_view kUnix = "unix://";
constexpr std::string_view kTcp = "tcp://";
constexpr size_t kMaxAnswerBytes = size_t{64} << 20;
constexpr absl::Duration kConnectLimit = absl::Seconds(5);
constexpr int kFirstError = 400;
constexpr int kNoSuchThing = 404;

void InitializeCurl() {
  static std::once_flag once;
  std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
}

}  // namespace

// One request's handle and what is done with the bytes of its answer.
struct CurlTransport::Exchange {
  explicit Exchange(const std::atomic<bool>& cancel) : cancelled(cancel), curl(curl_easy_init()) {}
  ~Exchange() {
    curl_slist_free_all(headers);
    curl_easy_cleanup(curl);
  }
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  static size_t Write(char* data, size_t size, size_t count, void* self) {
    auto& exchange = *static_cast<Exchange*>(self);
    const size_t bytes = size * count;
    exchange.last_byte = absl::Now();
    return exchange.take(std::string_view(data, bytes)) ? bytes : 0;
  }

  static int Progress(void* self, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
    auto& exchange = *static_cast<Exchange*>(self);
    const bool over =
        exchange.cancelled || absl::Now() > exchange.deadline || absl::Now() - exchange.last_byte > exchange.idle;
    return over ? 1 : 0;
  }

  const std::atomic<bool>& cancelled;
  CURL* curl;
  curl_slist* headers = nullptr;
  std::function<bool(std::string_view bytes)> take;
  absl::Time deadline = absl::InfiniteFuture();
  absl::Time last_byte = absl::Now();
  absl::Duration idle = absl::InfiniteDuration();
};

absl::StatusOr<std::unique_ptr<CurlTransport>> CurlTransport::Create(EngineAddress address) {
  InitializeCurl();
  const std::string& host = address.host;
  if (host.starts_with(kUnix) && host.size() > kUnix.size() + 1) {
    std::string socket = host.substr(kUnix.size());
    return std::unique_ptr<CurlTransport>(new CurlTransport(std::move(address), std::move(socket), "http://localhost"));
  }
  if (host.starts_with(kTcp) && host.size() > kTcp.size()) {
    std::string base = fmt::format("{}://{}", address.tls_ca.empty() ? "http" : "https", host.substr(kTcp.size()));
    return std::unique_ptr<CurlTransport>(new CurlTransport(std::move(address), "", std::move(base)));
  }
  return InvalidArgument("backends.docker.host: '{}' is neither unix:///SOCKET nor tcp://HOST:PORT", host);
}

CurlTransport::CurlTransport(EngineAddress address, std::string socket, std::string base)
    : address_(std::move(address)), socket_(std::move(socket)), base_(std::move(base)) {}

absl::Status CurlTransport::Perform(Exchange& exchange, const EngineRequest& request) const {
  CURL* const curl = exchange.curl;
  if (curl == nullptr) return Unavailable("the docker engine cannot be asked: libcurl has no handle left");
  const std::string url = base_ + request.path;
  exchange.headers = curl_slist_append(nullptr, "Content-Type: application/json");
  exchange.headers = curl_slist_append(exchange.headers, "Expect:");
  curl_easy_setopt(curl, CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, exchange.headers);
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_PROXY, "");
  curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, request.method.c_str());
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(absl::ToInt64Milliseconds(kConnectLimit)));
  if (!socket_.empty()) curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, socket_.c_str());
  if (!address_.tls_ca.empty()) {
    curl_easy_setopt(curl, CURLOPT_CAINFO, address_.tls_ca.c_str());
    curl_easy_setopt(curl, CURLOPT_SSLCERT, address_.tls_cert.c_str());
    curl_easy_setopt(curl, CURLOPT_SSLKEY, address_.tls_key.c_str());
  }
  if (!request.body.empty() || request.method == "POST") {
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, request.body.c_str());
    curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
  }
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, &Exchange::Write);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &exchange);
  curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, &Exchange::Progress);
  curl_easy_setopt(curl, CURLOPT_XFERINFODATA, &exchange);
  std::array<char, CURL_ERROR_SIZE> words = {};
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, words.data());
  const CURLcode code = curl_easy_perform(curl);
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, nullptr);
  if (code == CURLE_OK) return absl::OkStatus();
  const std::string why = words[0] != 0 ? words.data() : curl_easy_strerror(code);
  return Unavailable("the docker engine at {} does not answer: {}", address_.host, WhyNot(code, why));
}

// A certificate that the other side does not take ends the connection with the first bytes after the handshake, which
// has succeeded here.
std::string CurlTransport::WhyNot(int code, const std::string& why) const {
  if (code == CURLE_ABORTED_BY_CALLBACK) return "no answer in time";
  const bool broke_off = code == CURLE_SEND_ERROR || code == CURLE_RECV_ERROR || code == CURLE_GOT_NOTHING;
  if (address_.tls_cert.empty() || !broke_off) return why;
  return fmt::format("{}; it may not accept the certificate {}: see by whom it is signed and until when it is valid",
                     why, address_.tls_cert);
}

absl::StatusOr<EngineResponse> CurlTransport::Send(const EngineRequest& request, absl::Time deadline) {
  Exchange exchange(cancelled_);
  EngineResponse response;
  exchange.deadline = deadline;
  exchange.take = [&response](std::string_view bytes) {
    response.body.append(bytes);
    return response.body.size() <= kMaxAnswerBytes;
  };
  const absl::Duration left = std::max(deadline - absl::Now(), absl::Milliseconds(1));
  if (exchange.curl != nullptr && left < absl::Hours(24)) {
    curl_easy_setopt(exchange.curl, CURLOPT_TIMEOUT_MS, static_cast<long>(absl::ToInt64Milliseconds(left) + 1));
  }
  TP_RETURN_IF_ERROR(Perform(exchange, request));
  long status = 0;
  curl_easy_getinfo(exchange.curl, CURLINFO_RESPONSE_CODE, &status);
  response.status = static_cast<int>(status);
  return response;
}

absl::Status CurlTransport::Stream(const EngineRequest& request, absl::Duration idle,
                                   const std::function<bool(std::string_view line)>& line) {
  Exchange exchange(cancelled_);
  std::string rest;
  bool enough = false;
  exchange.idle = idle;
  exchange.take = [&](std::string_view bytes) {
    rest.append(bytes);
    for (size_t end = rest.find('\n'); end != std::string::npos; end = rest.find('\n')) {
      const std::string one = rest.substr(0, end);
      rest.erase(0, end + 1);
      if (!line(one)) {
        enough = true;
        return false;
      }
    }
    return rest.size() <= kMaxAnswerBytes;
  };
  const absl::Status status = Perform(exchange, request);
  if (enough) return absl::OkStatus();
  TP_RETURN_IF_ERROR(status);
  long code = 0;
  curl_easy_getinfo(exchange.curl, CURLINFO_RESPONSE_CODE, &code);
  if (!rest.empty() && code < kFirstError) line(rest);
  if (code < kFirstError) return absl::OkStatus();
  // 404: there is none. The others may pass.
  const absl::StatusCode kind = code == kNoSuchThing ? absl::StatusCode::kUnknown : absl::StatusCode::kUnavailable;
  return Error(kind, "the docker engine answered {}: {}", code, rest);
}

}  // namespace tp::docker
