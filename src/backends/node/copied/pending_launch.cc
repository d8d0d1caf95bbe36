#include "backends/node/copied/pending_launch.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdint>
#include <vector>

#include <fmt/format.h>

#include "base/file.h"
#include "base/status.h"

namespace tp::node {
namespace {

constexpr std::string_view kPendingHeader = "tp-pending 1\n";
constexpr size_t kMaxPendingBytes = size_t{64} << 20;

// Texts, each as `<bytes>:<text>`; numbers and lengths of lists are texts too.
class Writer {
 public:
  void Add(std::string_view text) { out_ += fmt::format("{}:", text.size()).append(text); }
  void Add(int64_t number) { Add(std::string_view(std::to_string(number))); }
  std::string Take() { return std::move(out_); }

 private:
  std::string out_{kPendingHeader};
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  std::string Text() {
    const size_t colon = rest_.find(':');
    const std::optional<int64_t> length =
        colon == std::string_view::npos ? std::nullopt : Parse(rest_.substr(0, colon));
    if (!length || *length < 0 || static_cast<size_t>(*length) > rest_.size() - colon - 1) {
      torn_ = true;
      rest_ = {};
      return "";
    }
    std::string text(rest_.substr(colon + 1, static_cast<size_t>(*length)));
    rest_.remove_prefix(colon + 1 + static_cast<size_t>(*length));
    return text;
  }
  int64_t Number() {
    const std::optional<int64_t> number = Parse(Text());
    torn_ = torn_ || !number;
    return number.value_or(0);
  }
  // At most as many as could still be there.
  int64_t Count() {
    const int64_t count = Number();
    if (count < 0 || static_cast<size_t>(count) > rest_.size()) torn_ = true;
    return torn_ ? 0 : count;
  }
  bool whole() const { return !torn_ && rest_.empty(); }

 private:
  static std::optional<int64_t> Parse(std::string_view text) {
    int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    const bool good = error == std::errc() && end == text.data() + text.size();
    return good ? std::optional(number) : std::nullopt;
  }

  std::string_view rest_;
  bool torn_ = false;
};

void AddRank(const RankLaunch& rank, Writer& writer) {
  writer.Add(static_cast<int64_t>(rank.pool));
  writer.Add(static_cast<int64_t>(rank.rank));
  writer.Add(rank.placement.node);
  writer.Add(rank.placement.address);
  writer.Add(static_cast<int64_t>(rank.env.size()));
  for (const auto& [name, value] : rank.env) {
    writer.Add(name);
    writer.Add(value);
  }
}

RankLaunch ReadRank(Reader& reader) {
  RankLaunch rank;
  rank.pool = static_cast<int>(reader.Number());
  rank.rank = static_cast<int>(reader.Number());
  rank.placement.node = reader.Text();
  rank.placement.address = reader.Text();
  for (int64_t left = reader.Count(); left > 0; --left) {
    const std::string name = reader.Text();
    rank.env[name] = reader.Text();
  }
  return rank;
}

}  // namespace

std::string RenderPendingLaunch(const LaunchSpec& spec) {
  Writer writer;
  for (const std::string* text :
       {&spec.key, &spec.nonce, &spec.owner, &spec.run_id, &spec.step_name, &spec.paths.attempt_dir,
        &spec.paths.work_dir, &spec.paths.output_dir, &spec.paths.results_dir}) {
    writer.Add(*text);
  }
  writer.Add(static_cast<int64_t>(spec.attempt));
  writer.Add(spec.log_max_bytes);
  writer.Add(static_cast<int64_t>(spec.heartbeat_ms));
  writer.Add(static_cast<int64_t>(spec.argv.size()));
  for (const std::string& word : spec.argv) writer.Add(word);
  writer.Add(static_cast<int64_t>(spec.ranks.size()));
  for (const RankLaunch& rank : spec.ranks) AddRank(rank, writer);
  writer.Add("end");
  return writer.Take();
}

std::optional<LaunchSpec> ParsePendingLaunch(std::string_view bytes) {
  if (!bytes.starts_with(kPendingHeader)) return std::nullopt;
  Reader reader(bytes.substr(kPendingHeader.size()));
  LaunchSpec spec;
  for (std::string* text : {&spec.key, &spec.nonce, &spec.owner, &spec.run_id, &spec.step_name, &spec.paths.attempt_dir,
                            &spec.paths.work_dir, &spec.paths.output_dir, &spec.paths.results_dir}) {
    *text = reader.Text();
  }
  spec.attempt = static_cast<int>(reader.Number());
  spec.log_max_bytes = reader.Number();
  spec.heartbeat_ms = static_cast<int>(reader.Number());
  for (int64_t left = reader.Count(); left > 0; --left) spec.argv.push_back(reader.Text());
  for (int64_t left = reader.Count(); left > 0; --left) spec.ranks.push_back(ReadRank(reader));
  if (reader.Text() != "end" || !reader.whole()) return std::nullopt;
  return spec;
}

absl::Status KeepPendingLaunch(const std::string& directory, const LaunchSpec& spec) {
  if (mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST) return ErrnoStatus(errno, "make", directory);
  TP_ASSIGN_OR_RETURN(const Directory place, OpenDirectory(directory));
  return ReplaceFile(place, spec.key, RenderPendingLaunch(spec), 0600, Sync::kNone);
}

absl::StatusOr<std::optional<LaunchSpec>> FindPendingLaunch(const std::string& directory, const std::string& key,
                                                            const std::string& nonce) {
  const absl::StatusOr<Directory> place = OpenDirectory(directory);
  if (absl::IsNotFound(place.status())) return std::optional<LaunchSpec>();
  TP_RETURN_IF_ERROR(place.status());
  TP_ASSIGN_OR_RETURN(const std::optional<std::string> bytes, ReadSmallFile(*place, key, kMaxPendingBytes));
  if (!bytes) return std::optional<LaunchSpec>();
  std::optional<LaunchSpec> spec = ParsePendingLaunch(*bytes);
  if (!spec || spec->key != key || spec->nonce != nonce) return std::optional<LaunchSpec>();
  return spec;
}

void ForgetPendingLaunch(const std::string& directory, const std::string& key) {
  unlink(fmt::format("{}/{}", directory, key).c_str());
}

}  // namespace tp::node
