#include "launch/host.h"

#include <sys/utsname.h>

#include <cctype>
#include <cerrno>
#include <optional>

#include "base/file.h"
#include "base/status.h"

namespace tp::launch {
namespace {

constexpr size_t kMaxHostChars = 64;

}  // namespace

std::string SafeHost(std::string_view name) {
  std::string host;
  for (const char c : name.substr(0, kMaxHostChars)) {
    const bool safe = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '.';
    host += safe ? c : '_';
  }
  return host.empty() ? "unknown" : host;
}

absl::StatusOr<HostIdentity> ReadHostIdentity() {
  utsname names{};
  if (uname(&names) != 0) return ErrnoStatus(errno, "read", "the host's name");
  TP_ASSIGN_OR_RETURN(const Directory random, OpenDirectory("/proc/sys/kernel/random"));
  TP_ASSIGN_OR_RETURN(std::optional<std::string> boot_id, ReadSmallFile(random, "boot_id", 64));
  if (!boot_id) return Unavailable("{} does not exist: is /proc mounted?", random.At("boot_id"));
  while (!boot_id->empty() && boot_id->back() == '\n') boot_id->pop_back();
  return HostIdentity{SafeHost(names.nodename), *std::move(boot_id)};
}

}  // namespace tp::launch
