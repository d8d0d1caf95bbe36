#include "launch/record.h"

#include <charconv>
#include <limits>
#include <vector>

#include <fmt/format.h>

namespace tp::launch {
namespace {

constexpr std::string_view kHeader = "tp-record 1";
constexpr std::string_view kEnd = "end";
constexpr size_t kMaxFields = 256;

// The fields of one whole record, in order of appearance; views into its bytes.
class Fields {
 public:
  static std::optional<Fields> Parse(std::string_view bytes) {
    if (bytes.size() > kMaxRecordBytes || bytes.find('\0') != std::string_view::npos) return std::nullopt;
    if (TakeLine(bytes) != kHeader) return std::nullopt;
    Fields fields;
    for (;;) {
      const std::optional<std::string_view> line = TakeLine(bytes);
      if (!line) return std::nullopt;
      if (*line == kEnd) return bytes.empty() ? std::optional(std::move(fields)) : std::nullopt;
      const size_t equals = line->find('=');
      if (equals == std::string_view::npos || fields.items_.size() == kMaxFields) return std::nullopt;
      const std::string_view name = line->substr(0, equals);
      if (fields.Text(name)) return std::nullopt;  // twice: two writers at once
      fields.items_.push_back({name, line->substr(equals + 1)});
    }
  }

  std::optional<std::string_view> Text(std::string_view name) const {
    for (const Item& item : items_) {
      if (item.name == name) return item.value;
    }
    return std::nullopt;
  }

  std::string TextOr(std::string_view name, std::string_view fallback) const {
    return std::string(Text(name).value_or(fallback));
  }

  bool Is(std::string_view name, std::string_view value) const { return Text(name) == value; }

  template <typename Number>
  std::optional<Number> Integer(std::string_view name) const {
    const std::optional<std::string_view> text = Text(name);
    if (!text) return std::nullopt;
    Number number{};
    const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number);
    if (error != std::errc() || end != text->data() + text->size()) return std::nullopt;
    return number;
  }

  bool Names(const RankName& name) const {
    return Is("key", name.key) && Integer<int>("pool") == name.pool && Integer<int>("rank") == name.rank;
  }

 private:
  struct Item {
    std::string_view name;
    std::string_view value;
  };

  // The next line without its newline; nothing where the newline is missing.
  static std::optional<std::string_view> TakeLine(std::string_view& bytes) {
    const size_t newline = bytes.find('\n');
    if (newline == std::string_view::npos) return std::nullopt;
    const std::string_view line = bytes.substr(0, newline);
    bytes.remove_prefix(newline + 1);
    return line;
  }

  std::vector<Item> items_;
};

std::optional<Fields> ParseOfRank(std::string_view bytes, const RankName& name) {
  std::optional<Fields> fields = Fields::Parse(bytes);
  if (!fields || !fields->Names(name) || fields->TextOr("nonce", "").empty()) return std::nullopt;
  return fields;
}

std::optional<HostStamp> Stamp(const Fields& fields, const char* prefix) {
  const std::optional<int64_t> boot_us = fields.Integer<int64_t>(fmt::format("{}_boot_us", prefix));
  const std::optional<int64_t> unix_us = fields.Integer<int64_t>(fmt::format("{}_unix_us", prefix));
  if (!boot_us || !unix_us || *boot_us < 0) return std::nullopt;
  return HostStamp{fields.TextOr("host", ""), fields.TextOr("boot_id", ""), *boot_us, *unix_us};
}

std::optional<SignalledBy> ParseSignalledBy(const Fields& fields) {
  if (fields.Is("signalled", "no")) return SignalledBy::kNobody;
  if (!fields.Is("signalled", "yes")) return std::nullopt;
  return fields.Is("signalled_by", "tpd") ? SignalledBy::kTpd : SignalledBy::kOther;
}

// How the job's first process ended. Nothing where the record contradicts itself.
bool ReadExit(const Fields& fields, EndRecord& record) {
  if (fields.Is("exit", "not_started")) {
    record.exit = ExitKind::kNotStarted;
    record.code = -1;
    record.start_error = fields.TextOr("errno_name", "");
    return true;
  }
  const std::optional<int> code = fields.Integer<int>("code");
  const std::optional<int> term_signal = fields.Integer<int>("term_signal");
  if (!code || !term_signal) return false;
  if (fields.Is("exit", "exited")) {
    record.exit = ExitKind::kExited;
    record.code = *code;
    return *code >= 0 && *code <= 255 && *term_signal == 0;
  }
  record.exit = ExitKind::kKilled;
  record.code = -1;
  record.term_signal = *term_signal;
  return fields.Is("exit", "killed") && *term_signal > 0;
}

}  // namespace

std::optional<AttemptClaim> ParseAttemptClaim(std::string_view bytes, std::string_view key) {
  const std::optional<Fields> fields = Fields::Parse(bytes);
  if (!fields || !fields->Is("key", key)) return std::nullopt;
  if (fields->Is("owner", "fence")) return AttemptClaim{.fenced = true, .nonce = {}};
  std::string nonce = fields->TextOr("nonce", "");
  if (!fields->Is("owner", "launch") || nonce.empty()) return std::nullopt;
  return AttemptClaim{.fenced = false, .nonce = std::move(nonce)};
}

std::optional<RankClaim> ParseRankClaim(std::string_view bytes, const RankName& name) {
  const std::optional<Fields> fields = ParseOfRank(bytes, name);
  if (!fields) return std::nullopt;
  const std::optional<int64_t> pid = fields->Integer<int64_t>("runner_pid");
  const std::optional<uint64_t> ticks = fields->Integer<uint64_t>("runner_start_ticks");
  if (!pid || *pid <= 0 || *pid > std::numeric_limits<int32_t>::max() || !ticks) return std::nullopt;
  return RankClaim{fields->TextOr("nonce", ""), fields->TextOr("host", ""), fields->TextOr("boot_id", ""), *pid, *ticks,
                   fields->TextOr("cgroup", "")};
}

std::optional<StartRecord> ParseStartRecord(std::string_view bytes, const RankName& name) {
  const std::optional<Fields> fields = ParseOfRank(bytes, name);
  if (!fields || fields->Is("exit", "not_started")) return std::nullopt;
  std::optional<HostStamp> at = Stamp(*fields, "started");
  if (!at) return std::nullopt;
  return StartRecord{fields->TextOr("nonce", ""), *std::move(at), fields->Integer<int64_t>("precision_us").value_or(0)};
}

std::optional<EndRecord> ParseEndRecord(std::string_view bytes, const RankName& name) {
  const std::optional<Fields> fields = ParseOfRank(bytes, name);
  if (!fields) return std::nullopt;
  std::optional<HostStamp> at = Stamp(*fields, "ended");
  const std::optional<SignalledBy> signalled_by = ParseSignalledBy(*fields);
  EndRecord record;
  if (!at || !signalled_by || !ReadExit(*fields, record)) return std::nullopt;
  record.nonce = fields->TextOr("nonce", "");
  record.at = *std::move(at);
  record.signalled_by = *signalled_by;
  record.ambiguous = fields->Is("ambiguous", "yes");
  record.oom_kills = fields->Integer<int64_t>("oom_kills").value_or(0);
  record.log_bytes = fields->Integer<int64_t>("log_bytes").value_or(0);
  return record;
}

std::optional<NoncedHeartbeat> ParseHeartbeat(std::string_view bytes, const RankName& name) {
  const std::optional<Fields> fields = ParseOfRank(bytes, name);
  if (!fields) return std::nullopt;
  std::optional<HostStamp> at = Stamp(*fields, "beat");
  const std::optional<int64_t> count = fields->Integer<int64_t>("count");
  if (!at || !count || *count < 0) return std::nullopt;
  return NoncedHeartbeat{fields->TextOr("nonce", ""), {*count, *std::move(at)}};
}

std::optional<std::string> ParseKey(std::string_view bytes) {
  const std::optional<Fields> fields = Fields::Parse(bytes);
  if (!fields || fields->TextOr("key", "").empty()) return std::nullopt;
  return fields->TextOr("key", "");
}

std::string RenderFenceClaim(std::string_view key, std::string_view host, std::string_view boot_id) {
  return fmt::format("{}\nkey={}\nowner=fence\nhost={}\nboot_id={}\n{}\n", kHeader, key, host, boot_id, kEnd);
}

}  // namespace tp::launch
