// TP_CRASH_AT=before-commit:N or after-commit:N: SIGKILL to this process around the N-th commit of its
// life.
#include "tpd/faults.h"

#include <sys/types.h>
#include <unistd.h>

#include <charconv>
#include <csignal>
#include <cstdlib>
#include <string_view>

#include "base/status.h"

namespace tp::tpd {
namespace {

struct CrashAt {
  loop::CommitPoint point = loop::CommitPoint::kBefore;
  int64_t commit = 0;
};

absl::StatusOr<CrashAt> ParseCrashAt(std::string_view text) {
  const size_t colon = text.find(':');
  const std::string_view point = text.substr(0, colon);
  const std::string_view number = colon == std::string_view::npos ? std::string_view() : text.substr(colon + 1);
  CrashAt crash;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), crash.commit);
  if (error == std::errc{} && end == number.data() + number.size() && crash.commit > 0) {
    if (point == "before-commit") return crash;
    crash.point = loop::CommitPoint::kAfter;
    if (point == "after-commit") return crash;
  }
  return InvalidArgument("TP_CRASH_AT={} is not before-commit:N or after-commit:N", text);
}

}  // namespace

absl::StatusOr<std::function<void(int64_t commit, loop::CommitPoint point)>> CommitFault() {
  const char* text = std::getenv("TP_CRASH_AT");
  if (text == nullptr) return nullptr;
  TP_ASSIGN_OR_RETURN(const CrashAt crash, ParseCrashAt(text));
  return [crash](int64_t commit, loop::CommitPoint point) {
    if (commit != crash.commit || point != crash.point) return;
    kill(getpid(), SIGKILL);
    pause();
  };
}

}  // namespace tp::tpd
