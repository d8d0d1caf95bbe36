#include "backends/node/copied/handover.h"

#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdio>

#include <fmt/format.h>

#include "base/file.h"
#include "base/status.h"

namespace tp::node {
namespace {

constexpr char kHandover[] = "handover";
constexpr std::string_view kHandoverHeader = "tp-handover 1";
constexpr size_t kMaxHandoverBytes = 16 * 1024;

std::optional<int64_t> NumberIn(std::string_view text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = error == std::errc() && end == text.data() + text.size() && number >= 0;
  return whole ? std::optional(number) : std::nullopt;
}

// `<boot id> <uptime> <node>`
std::optional<OrderLimit> OrderIn(std::string_view text) {
  const size_t first = text.find(' ');
  const size_t second = first == std::string_view::npos ? first : text.find(' ', first + 1);
  if (second == std::string_view::npos) return std::nullopt;
  const std::optional<int64_t> uptime = NumberIn(text.substr(first + 1, second - first - 1));
  if (!uptime) return std::nullopt;
  return OrderLimit{std::string(text.substr(second + 1)), std::string(text.substr(0, first)), *uptime};
}

bool TakeHandoverLine(std::string_view line, Handover& handover) {
  const size_t equals = line.find('=');
  if (equals == std::string_view::npos) return false;
  const std::string_view name = line.substr(0, equals);
  const std::string_view value = line.substr(equals + 1);
  if (name == "key") handover.key = value;
  if (name == "nonce") handover.nonce = value;
  if (name == "log_max_bytes") handover.log_max_bytes = NumberIn(value).value_or(0);
  if (name != "order") return true;
  std::optional<OrderLimit> order = OrderIn(value);
  if (order) handover.orders.push_back(*std::move(order));
  return order.has_value();
}

absl::Status SyncUpTo(const std::string& storage_root, std::string path) {
  while (path.size() > storage_root.size()) {
    path.resize(path.rfind('/'));
    TP_ASSIGN_OR_RETURN(const Directory directory, OpenDirectory(path));
    TP_RETURN_IF_ERROR(SyncDirectory(directory));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::optional<Handover>> ReadIn(const Directory& directory) {
  TP_ASSIGN_OR_RETURN(const std::optional<std::string> bytes, ReadSmallFile(directory, kHandover, kMaxHandoverBytes));
  if (!bytes) return std::optional<Handover>();
  std::optional<Handover> handover = ParseHandover(*bytes);
  if (!handover) return FailedPrecondition("{} cannot be read: it is torn", directory.At(kHandover));
  return handover;
}

}  // namespace

std::string RenderHandover(const Handover& handover) {
  std::string text = fmt::format("{}\nkey={}\nnonce={}\nlog_max_bytes={}\n", kHandoverHeader, handover.key,
                                 handover.nonce, handover.log_max_bytes);
  for (const OrderLimit& order : handover.orders) {
    text += fmt::format("order={} {} {}\n", order.boot_id, order.latest_uptime_s, order.node);
  }
  return text + "end\n";
}

std::optional<Handover> ParseHandover(std::string_view bytes) {
  Handover handover;
  for (bool first = true;; first = false) {
    const size_t newline = bytes.find('\n');
    if (newline == std::string_view::npos) return std::nullopt;
    const std::string_view line = bytes.substr(0, newline);
    bytes.remove_prefix(newline + 1);
    if (line == "end" && !first) return bytes.empty() ? std::optional(std::move(handover)) : std::nullopt;
    if (first ? line != kHandoverHeader : !TakeHandoverLine(line, handover)) return std::nullopt;
  }
}

absl::StatusOr<std::optional<Handover>> ReadHandover(const std::string& attempt_dir) {
  const absl::StatusOr<Directory> directory = OpenDirectory(attempt_dir);
  if (absl::IsNotFound(directory.status())) return std::optional<Handover>();
  TP_RETURN_IF_ERROR(directory.status());
  return ReadIn(*directory);
}

absl::StatusOr<Handover> MakeHandover(const std::string& attempt_dir, const std::string& storage_root,
                                      const Handover& handover) {
  if (!attempt_dir.starts_with(storage_root + "/")) {
    return InvalidArgument("{} is not beneath storage.root {}", attempt_dir, storage_root);
  }
  TP_ASSIGN_OR_RETURN(const Directory directory,
                      MakeDirectoriesBeneath(storage_root, attempt_dir.substr(storage_root.size() + 1), 02770));
  TP_RETURN_IF_ERROR(SyncUpTo(storage_root, attempt_dir));
  TP_RETURN_IF_ERROR(LinkNewFile(directory, kHandover, RenderHandover(handover), 0660, Sync::kDurable).status());
  TP_ASSIGN_OR_RETURN(std::optional<Handover> found, ReadIn(directory));
  if (!found) return NotFound("{} is not there after linking it", directory.At(kHandover));
  if (found->key != handover.key) return FailedPrecondition("{} is of another attempt", directory.At(kHandover));
  TP_RETURN_IF_ERROR(SyncDirectory(directory));
  return *std::move(found);
}

absl::Status TakeHandoverBack(const std::string& attempt_dir, const std::string& nonce) {
  TP_ASSIGN_OR_RETURN(const Directory directory, OpenDirectory(attempt_dir));
  TP_ASSIGN_OR_RETURN(const std::optional<Handover> found, ReadIn(directory));
  if (!found || found->nonce != nonce) return absl::OkStatus();
  if (unlinkat(directory.fd.get(), kHandover, 0) != 0 && errno != ENOENT) {
    return ErrnoStatus(errno, "remove", directory.At(kHandover));
  }
  return SyncDirectory(directory);
}

}  // namespace tp::node
