#include "cli/client.h"

#include <array>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <thread>

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <sys/random.h>

#include "absl/time/clock.h"
#include "base/status.h"
#include "cli/rpc_status.h"
#include "cli/version_text.h"

namespace tp::cli {
namespace {

constexpr int kMaxAnswerBytes = 64 << 20;
constexpr std::chrono::seconds kVersionTimeout(2);
constexpr std::array<std::chrono::milliseconds, 4> kRetryDelays = {
    std::chrono::milliseconds(250), std::chrono::milliseconds(1000), std::chrono::milliseconds(2500),
    std::chrono::milliseconds(5000)};

grpc::ChannelArguments ChannelArgumentsFor(const Endpoint& endpoint) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMaxAnswerBytes);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 1000);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  arguments.SetInt(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);
  // Above the five minutes that a gRPC server allows between pings of an idle stream by default.
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 320'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 20'000);
  if (!endpoint.tls) arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  return arguments;
}

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> CredentialsFor(const Endpoint& endpoint) {
  if (!endpoint.tls) return grpc::InsecureChannelCredentials();
  std::ifstream file(endpoint.ca_file, std::ios::binary);
  if (!file) {
    return InvalidArgument("cannot read the certificates of {}; set TP_CA_FILE to the server's authority",
                           endpoint.ca_file);
  }
  grpc::SslCredentialsOptions options;
  options.pem_root_certs.assign(std::istreambuf_iterator<char>(file), {});
  return grpc::SslCredentials(options);
}

}  // namespace

std::string NewRequestId() {
  std::array<unsigned char, 16> bytes{};
  size_t filled = 0;
  while (filled < bytes.size()) {
    const ssize_t got = ::getrandom(bytes.data() + filled, bytes.size() - filled, 0);
    if (got > 0) filled += static_cast<size_t>(got);
  }
  std::string text;
  for (const unsigned char byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

absl::StatusOr<std::unique_ptr<Client>> Client::Connect(const Endpoint& endpoint, absl::Duration patience) {
  TP_ASSIGN_OR_RETURN(const auto credentials, CredentialsFor(endpoint));
  const auto channel = grpc::CreateCustomChannel(endpoint.target, credentials, ChannelArgumentsFor(endpoint));
  if (!channel->WaitForConnected(absl::ToChronoTime(absl::Now() + patience))) {
    return Unavailable("no answer from {} within {} s; is tpd running there? (--server or TP_SERVER names another)",
                       endpoint.target, absl::ToInt64Seconds(patience));
  }
  return std::unique_ptr<Client>(new Client(endpoint.target, endpoint.token, channel));
}

Client::Client(std::string target, std::string token, const std::shared_ptr<grpc::Channel>& channel)
    : target_(std::move(target)),
      token_(std::move(token)),
      stubs_(v1::RunService::NewStub(channel), v1::LogService::NewStub(channel), v1::SnapshotService::NewStub(channel),
             v1::RegistryService::NewStub(channel), v1::UsageService::NewStub(channel),
             v1::QuotaService::NewStub(channel), v1::WindowService::NewStub(channel), v1::NodeService::NewStub(channel),
             v1::SystemService::NewStub(channel)) {}

void Client::Authorize(grpc::ClientContext& context) const {
  // As metadata and not as call credentials, which gRPC refuses on a channel without TLS.
  if (!token_.empty()) context.AddMetadata("authorization", "Bearer " + token_);
}

absl::Status Client::CallWithRetries(absl::Duration timeout,
                                     const std::function<grpc::Status(grpc::ClientContext&)>& attempt) {
  for (size_t tries = 0;; ++tries) {
    grpc::ClientContext context;
    Authorize(context);
    context.set_deadline(std::chrono::system_clock::now() + absl::ToChronoMilliseconds(timeout));
    const grpc::Status status = attempt(context);
    if (status.error_code() != grpc::StatusCode::UNAVAILABLE || tries == kRetryDelays.size()) return Explain(status);
    std::this_thread::sleep_for(kRetryDelays[tries]);
  }
}

absl::Status Client::Explain(const grpc::Status& status) {
  switch (status.error_code()) {
    case grpc::StatusCode::UNAVAILABLE:
      return Unavailable("the server at {} is not available: {}", target_, status.error_message());
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      return Error(absl::StatusCode::kDeadlineExceeded,
                   "the server at {} has not answered in time; what was asked may or may not have been done (tp ls)",
                   target_);
    case grpc::StatusCode::UNIMPLEMENTED:
      return ExplainUnknownCall();
    case grpc::StatusCode::UNAUTHENTICATED:
      if (token_.empty()) {
        return Error(absl::StatusCode::kUnauthenticated,
                     "the server at {} wants a token and none was found; set TP_TOKEN_FILE or TP_TOKEN", target_);
      }
      return FromGrpc(status);
    default:  // an open enum; the rest speaks for itself
      return FromGrpc(status);
  }
}

// Of another version, or no tpd at all.
absl::Status Client::ExplainUnknownCall() {
  grpc::ClientContext context;
  Authorize(context);
  context.set_deadline(std::chrono::system_clock::now() + kVersionTimeout);
  v1::GetServerInfoResponse info;
  if (!stub<v1::SystemService::Stub>().GetServerInfo(&context, {}, &info).ok()) {
    return Error(
        absl::StatusCode::kUnimplemented,
        "what answers at {} is no tpd, or one that this tp {} can't talk to: check the address, or install the "
        "tp of the server's version",
        target_, ClientVersion());
  }
  return Error(absl::StatusCode::kUnimplemented,
               "the server at {} is tpd {} and does not know what this tp {} asks for: {}", target_, info.version(),
               ClientVersion(),
               IsOlder(info.version(), ClientVersion()) ? "have tpd upgraded, or install the tp of its version"
                                                        : "install the tp of its version");
}

}  // namespace tp::cli
