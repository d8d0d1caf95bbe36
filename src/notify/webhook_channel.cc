#include "notify/webhook_channel.h"

#include <mutex>
#include <utility>

#include <curl/curl.h>
#include <fmt/format.h>

#include "absl/time/clock.h"
#include "notify/signature.h"

namespace tp::notify {
namespace {

constexpr long kConnectTimeoutMs = 5'000;
constexpr long kTimeoutMs = 10'000;
constexpr int kPollMs = 1'000;
constexpr size_t kMostAnswerBytes = 64 * 1024;

void InitializeOnce() {
  static std::once_flag once;
  std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
}

struct FreeList {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
using Headers = std::unique_ptr<curl_slist, FreeList>;

void Add(Headers& headers, const std::string& line) {
  headers.reset(curl_slist_append(headers.release(), line.c_str()));
}

Headers HeadersOf(const Notification& message, std::string_view key, int64_t unix_seconds) {
  Headers headers;
  Add(headers, "Content-Type: application/json");
  Add(headers, "webhook-id: " + message.id);
  Add(headers, fmt::format("webhook-timestamp: {}", unix_seconds));
  Add(headers, "webhook-signature: " + Sign(key, message.id, unix_seconds, message.body));
  Add(headers, "Expect:");
  return headers;
}

// The answer is of no interest: it is dropped, and the connection with it when it is too long.
size_t Drop(char* /*bytes*/, size_t size, size_t count, void* so_far) {
  size_t& total = *static_cast<size_t*>(so_far);
  total += size * count;
  return total <= kMostAnswerBytes ? size * count : 0;
}

}  // namespace

struct WebhookChannel::Handles {
  CURL* easy = curl_easy_init();
  CURLM* multi = curl_multi_init();

  Handles() = default;
  Handles(const Handles&) = delete;
  Handles& operator=(const Handles&) = delete;
  ~Handles() {
    curl_easy_cleanup(easy);
    curl_multi_cleanup(multi);
  }

  void SetUp(const std::string& url, const std::string& body, const Headers& headers, size_t& answer_bytes) const {
    curl_easy_reset(easy);
    curl_easy_setopt(easy, CURLOPT_URL, url.c_str());
    curl_easy_setopt(easy, CURLOPT_POST, 1L);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, body.c_str());
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body.size()));
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers.get());
    curl_easy_setopt(easy, CURLOPT_USERAGENT, "tpd");
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(easy, CURLOPT_PROXY, "");  // also not one of the environment
    curl_easy_setopt(easy, CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 1L);
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 2L);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);  // a name that is still being looked up keeps nobody waiting
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, kConnectTimeoutMs);
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, kTimeoutMs);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, Drop);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, &answer_bytes);
  }

  // False when `stop_fd` became readable first.
  bool Perform(int stop_fd, CURLcode& code) const {
    curl_multi_add_handle(multi, easy);
    const bool finished = PerformUntil(stop_fd);
    int left = 0;
    code = CURLE_FAILED_INIT;
    while (const CURLMsg* said = curl_multi_info_read(multi, &left)) {
      if (said->msg == CURLMSG_DONE) code = said->data.result;
    }
    curl_multi_remove_handle(multi, easy);
    return finished;
  }

  bool PerformUntil(int stop_fd) const {
    curl_waitfd stop = {.fd = stop_fd, .events = CURL_WAIT_POLLIN, .revents = 0};
    for (int running = 1;;) {
      if (curl_multi_perform(multi, &running) != CURLM_OK || running == 0) return true;
      if (curl_multi_poll(multi, &stop, 1, kPollMs, nullptr) != CURLM_OK) return true;
      if (stop.revents != 0) return false;
    }
  }
};

WebhookChannel::WebhookChannel(std::string url, std::string key)
    : url_(std::move(url)), key_(std::move(key)), handles_((InitializeOnce(), std::make_unique<Handles>())) {}

WebhookChannel::~WebhookChannel() = default;

TryResult WebhookChannel::Send(const Notification& message, int stop_fd) {
  if (handles_->easy == nullptr || handles_->multi == nullptr) {
    return {.outcome = TryOutcome::kFailed, .why = "this machine has no memory left for it"};
  }
  const Headers headers = HeadersOf(message, key_, absl::ToUnixSeconds(absl::Now()));
  size_t answer_bytes = 0;
  handles_->SetUp(url_, message.body, headers, answer_bytes);
  CURLcode code = CURLE_OK;
  if (!handles_->Perform(stop_fd, code)) return {.outcome = TryOutcome::kCancelled, .why = "tpd ends"};
  long status = 0;
  curl_easy_getinfo(handles_->easy, CURLINFO_RESPONSE_CODE, &status);
  curl_off_t retry_after_s = 0;
  curl_easy_getinfo(handles_->easy, CURLINFO_RETRY_AFTER, &retry_after_s);
  const bool answered = code == CURLE_OK || (code == CURLE_WRITE_ERROR && answer_bytes > kMostAnswerBytes);
  if (answered) return ResultOfHttp(status, absl::Seconds(retry_after_s));
  return {.outcome = TryOutcome::kFailed, .why = curl_easy_strerror(code)};
}

}  // namespace tp::notify
