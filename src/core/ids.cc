#include "core/ids.h"

#include <charconv>

#include "base/status.h"

namespace tp::core {
namespace {

constexpr size_t kMaxSlug = 30;
constexpr size_t kMaxDeployment = 10;

bool IsSlugChar(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }

// A decimal number without sign, blanks or leading zeros.
std::optional<int64_t> ParseDecimal(std::string_view text) {
  if (text.empty() || (text.size() > 1 && text[0] == '0') || text[0] == '-') return std::nullopt;
  int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Takes `<prefix><decimal>` off the end of `text` behind its last '-'.
std::optional<int64_t> TakeNumber(std::string_view& text, std::string_view prefix) {
  const size_t dash = text.rfind('-');
  if (dash == std::string_view::npos) return std::nullopt;
  std::string_view part = text.substr(dash + 1);
  if (part.substr(0, prefix.size()) != prefix) return std::nullopt;
  text = text.substr(0, dash);
  return ParseDecimal(part.substr(prefix.size()));
}

bool FitsInt32(int64_t value) { return value <= INT32_MAX; }

}  // namespace

std::string RunName(std::string_view slug, int64_t run) { return fmt::format("{}-{}", slug, run); }

std::string MakeSlug(std::string_view text) {
  std::string slug;
  for (char c : text) {
    if (slug.size() == kMaxSlug) break;
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    if (IsSlugChar(c)) {
      slug.push_back(c);
    } else if (!slug.empty() && slug.back() != '-') {
      slug.push_back('-');
    }
  }
  while (!slug.empty() && slug.back() == '-') slug.pop_back();
  return slug.empty() ? "run" : slug;
}

absl::Status CheckDeploymentName(std::string_view name) {
  bool good = !name.empty() && name.size() <= kMaxDeployment && name[0] >= 'a' && name[0] <= 'z';
  for (char c : name) good = good && IsSlugChar(c);
  if (good) return absl::OkStatus();
  return InvalidArgument("deployment name '{}' is not usable: write a letter and up to nine of [a-z0-9]", name);
}

std::string AttemptKey(const Deployment& deployment, const AttemptRef& attempt) {
  return fmt::format("tp-{}-e{}-{}-s{}-a{}", deployment.name, deployment.epoch, attempt.step.run, attempt.step.step,
                     attempt.attempt);
}

std::optional<ParsedKey> ParseAttemptKey(std::string_view key) {
  std::string_view rest = key;
  const auto attempt = TakeNumber(rest, "a");
  const auto step = TakeNumber(rest, "s");
  const auto run = TakeNumber(rest, "");
  const auto epoch = TakeNumber(rest, "e");
  if (!attempt || !step || !run || !epoch || !FitsInt32(*attempt) || !FitsInt32(*step)) return std::nullopt;
  if (rest.substr(0, 3) != "tp-") return std::nullopt;
  ParsedKey parsed;
  parsed.deployment = {std::string(rest.substr(3)), *epoch};
  parsed.attempt = {{*run, static_cast<int32_t>(*step)}, static_cast<int32_t>(*attempt)};
  if (!CheckDeploymentName(parsed.deployment.name).ok()) return std::nullopt;
  return parsed;
}

absl::StatusOr<RunSelector> ParseRunSelector(std::string_view text) {
  if (text == "@last") return RunSelector{.last = true, .run = 0, .slug = std::nullopt};
  if (const auto run = ParseDecimal(text)) return RunSelector{.last = false, .run = *run, .slug = std::nullopt};
  std::string_view slug = text;
  if (const auto run = TakeNumber(slug, ""); run && !slug.empty()) {
    return RunSelector{.last = false, .run = *run, .slug = std::string(slug)};
  }
  return InvalidArgument("'{}' names no run: write its number (42), its id (train-42) or @last", text);
}

}  // namespace tp::core
