#include "tpd/logging.h"

#include <memory>

#include <spdlog/async.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <nlohmann/json.hpp>

#include "absl/time/time.h"
#include "base/status.h"

namespace tp::tpd {
namespace {

constexpr size_t kQueuedLines = 8192;
constexpr char kTextPattern[] = "%Y-%m-%dT%H:%M:%S.%eZ %l %v";

// One JSON object a line.
class JsonFormatter final : public spdlog::formatter {
 public:
  void format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& out) override {
    const auto level = spdlog::level::to_string_view(message.level);
    const nlohmann::ordered_json line = {
        {"time", absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", absl::FromChrono(message.time), absl::UTCTimeZone())},
        {"level", std::string(level.data(), level.size())},
        {"message", std::string(message.payload.data(), message.payload.size())}};
    const std::string text = line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
    out.append(text.data(), text.data() + text.size());
  }
  std::unique_ptr<formatter> clone() const override { return std::make_unique<JsonFormatter>(); }
};

}  // namespace

void StartLogging(LogFormat format, const std::string& level) {
  spdlog::init_thread_pool(kQueuedLines, 1);
  auto logger =
      std::make_shared<spdlog::async_logger>("tpd", std::make_shared<spdlog::sinks::stderr_sink_mt>(),
                                             spdlog::thread_pool(), spdlog::async_overflow_policy::overrun_oldest);
  if (format == LogFormat::kJson) {
    logger->set_formatter(std::make_unique<JsonFormatter>());
  } else {
    logger->set_pattern(kTextPattern, spdlog::pattern_time_type::utc);
  }
  logger->set_level(spdlog::level::from_str(level));
  logger->flush_on(spdlog::level::info);
  spdlog::set_default_logger(std::move(logger));
}

void StopLogging() { spdlog::shutdown(); }

absl::Status CheckLogLevel(const std::string& level) {
  for (const char* known : {"trace", "debug", "info", "warning", "error"}) {
    if (level == known) return absl::OkStatus();
  }
  return InvalidArgument("log level '{}' does not exist: trace, debug, info, warning, error", level);
}

}  // namespace tp::tpd
