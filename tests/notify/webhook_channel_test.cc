// Posts over real sockets.
#include "notify/webhook_channel.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <string>
#include <thread>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/time/clock.h"
#include "base/fd.h"
#include "notify/signature.h"

namespace tp::notify {
namespace {

using ::testing::HasSubstr;

constexpr char kKey[] = "0123456789abcdef";

// Takes one connection after the other, reads one request of each and writes `answer`, or nothing for ever.
class SocketServer {
 public:
  explicit SocketServer(std::string answer) : answer_(std::move(answer)), listener_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    EXPECT_EQ(bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(listener_.get(), 8), 0);
    EXPECT_EQ(getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { Serve(); });
  }
  ~SocketServer() { Finish(); }

  std::string Url(const std::string& scheme = "http") const {
    return fmt::format("{}://127.0.0.1:{}/secret-path", scheme, port_);
  }
  int connections() const { return connections_; }

  // Ends it, and gives back what it was sent.
  const std::string& Finish() {
    shutdown(listener_.get(), SHUT_RDWR);
    if (thread_.joinable()) thread_.join();
    return request_;
  }

 private:
  void Serve() {
    for (;;) {
      const UniqueFd connection(accept(listener_.get(), nullptr, nullptr));
      if (!connection.valid()) return;
      ++connections_;
      Read(connection.get());
      if (answer_.empty()) {
        std::array<char, 16> rest{};
        while (read(connection.get(), rest.data(), rest.size()) > 0) {
        }
      }
      for (size_t at = 0; at < answer_.size();) {
        const ssize_t sent = send(connection.get(), answer_.data() + at, answer_.size() - at, MSG_NOSIGNAL);
        if (sent <= 0) break;
        at += static_cast<size_t>(sent);
      }
    }
  }

  void Read(int connection) {
    std::array<char, 4096> buffer{};
    while (request_.find("\"end\"") == std::string::npos) {
      const ssize_t got = read(connection, buffer.data(), buffer.size());
      if (got <= 0) return;
      request_.append(buffer.data(), static_cast<size_t>(got));
      if (request_.front() != 'P') return;  // no HTTP
    }
  }

  const std::string answer_;
  const UniqueFd listener_;
  int port_ = 0;
  std::atomic<int> connections_{0};
  std::string request_;
  std::thread thread_;
};

std::string HttpAnswer(const std::string& status_and_headers, const std::string& body = "") {
  return fmt::format("HTTP/1.1 {}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{}", status_and_headers,
                     body.size(), body);
}

class WebhookChannelTest : public ::testing::Test {
 protected:
  TryResult Post(const std::string& url) const { return WebhookChannel(url, kKey).Send(notification_, stop_.get()); }

  const UniqueFd stop_{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  const Notification notification_{.id = "msg_1", .receiver = "chat", .recipient = "", .run = 1, .body = R"("end")"};
};

TEST_F(WebhookChannelTest, PostsWhatIsSigned) {
  SocketServer server(HttpAnswer("200 OK"));
  EXPECT_EQ(Post(server.Url()).outcome, TryOutcome::kTaken);
  const std::string request = server.Finish();
  EXPECT_THAT(request, HasSubstr("POST /secret-path HTTP/1.1\r\n"));
  EXPECT_THAT(request, HasSubstr("\r\nwebhook-id: msg_1\r\n"));
  const size_t at = request.find("\r\nwebhook-timestamp: ");
  ASSERT_NE(at, std::string::npos);
  const int64_t unix_seconds = std::stoll(request.substr(at + 21));
  EXPECT_LT(std::abs(unix_seconds - absl::ToUnixSeconds(absl::Now())), 30);
  EXPECT_THAT(request, HasSubstr("\r\nwebhook-signature: " + Sign(kKey, "msg_1", unix_seconds, R"("end")") + "\r\n"));
}

TEST_F(WebhookChannelTest, FollowsNoRedirect) {
  const SocketServer elsewhere(HttpAnswer("200 OK"));
  const SocketServer server(HttpAnswer("307 Elsewhere\r\nLocation: " + elsewhere.Url()));
  const TryResult result = Post(server.Url());
  EXPECT_EQ(result.outcome, TryOutcome::kFailed);
  EXPECT_EQ(result.why, "it answers 307: redirects are not followed");
  EXPECT_EQ(elsewhere.connections(), 0);
}

TEST_F(WebhookChannelTest, BelievesAStatusAndNotItsLength) {
  const SocketServer server(HttpAnswer("200 OK", std::string(10'000'000, 'x')));
  EXPECT_EQ(Post(server.Url()).outcome, TryOutcome::kTaken);
  const SocketServer busy(HttpAnswer("503 Busy\r\nRetry-After: 9", "later"));
  const TryResult result = Post(busy.Url());
  EXPECT_EQ(result.outcome, TryOutcome::kFailed);
  EXPECT_EQ(result.retry_after, absl::Seconds(9));
}

TEST_F(WebhookChannelTest, IsBrokenOffWhenItIsToStop) {
  const SocketServer server("");
  const absl::Time begin = absl::Now();
  std::thread stopper([this, &server] {
    while (server.connections() == 0) std::this_thread::yield();
    eventfd_write(stop_.get(), 1);
  });
  EXPECT_EQ(Post(server.Url()).outcome, TryOutcome::kCancelled);
  stopper.join();
  EXPECT_LT(absl::Now() - begin, absl::Seconds(5));
}

TEST_F(WebhookChannelTest, SaysWhyNothingCameAndNotWhereto) {
  std::string url;
  {
    const SocketServer server(HttpAnswer("200 OK"));
    url = server.Url();
    const TryResult no_tls = Post(server.Url("https"));
    EXPECT_EQ(no_tls.outcome, TryOutcome::kFailed);
    EXPECT_EQ(no_tls.why.find("secret-path"), std::string::npos) << no_tls.why;
  }
  const TryResult refused = Post(url);  // nobody listens any more
  EXPECT_EQ(refused.outcome, TryOutcome::kFailed);
  EXPECT_FALSE(refused.why.empty());
  EXPECT_EQ(refused.why.find("secret-path"), std::string::npos) << refused.why;
}

TEST_F(WebhookChannelTest, UsesNoProxyOfTheEnvironment) {
  const SocketServer proxy(HttpAnswer("200 OK"));
  setenv("http_proxy", proxy.Url().c_str(), 1);
  const SocketServer server(HttpAnswer("200 OK"));
  EXPECT_EQ(Post(server.Url()).outcome, TryOutcome::kTaken);
  unsetenv("http_proxy");
  EXPECT_EQ(proxy.connections(), 0);
  EXPECT_EQ(server.connections(), 1);
}

}  // namespace
}  // namespace tp::notify
