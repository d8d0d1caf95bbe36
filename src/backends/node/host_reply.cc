#include "backends/node/host_reply.h"

#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "launch/host.h"

namespace tp::node {
namespace {

template <typename Number>
std::optional<Number> Parse(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return number;
}

std::optional<double> ParseSeconds(std::string_view text) {
  const std::optional<double> seconds = Parse<double>(text);
  return seconds && std::isfinite(*seconds) && *seconds >= 0 && *seconds < 1e12 ? seconds : std::nullopt;
}

// The text up to the next blank, taken off the front.
std::string_view TakeWord(std::string_view& text) {
  const size_t blank = text.find(' ');
  const std::string_view word = text.substr(0, blank);
  text.remove_prefix(blank == std::string_view::npos ? text.size() : blank + 1);
  return word;
}

std::string_view TakeReplyLine(std::string_view& text) {
  const size_t newline = text.find('\n');
  const std::string_view line = text.substr(0, newline);
  text.remove_prefix(newline == std::string_view::npos ? text.size() : newline + 1);
  return line;
}

void TakeRank(std::string_view rest, HostReply& reply) {
  const std::optional<size_t> id = Parse<size_t>(TakeWord(rest));
  const std::optional<int> code = Parse<int>(TakeWord(rest));
  if (!id || !code) return;
  reply.ranks[*id] = *code;
  if (!rest.empty()) reply.rank_words[*id] = std::string(rest);
}

void TakeMark(std::string_view rest, HostReply& reply) {
  const std::optional<int64_t> pid = Parse<int64_t>(TakeWord(rest));
  const std::optional<int64_t> parent = Parse<int64_t>(TakeWord(rest));
  if (pid && parent && !rest.empty()) reply.marks.push_back({*pid, *parent, std::string(rest)});
}

void TakeEnv(std::string_view rest, HostReply& reply) {
  const size_t equals = rest.find('=');
  if (equals == 0 || equals == std::string_view::npos) return;
  reply.env[std::string(rest.substr(0, equals))] = std::string(rest.substr(equals + 1));
}

bool TakeFact(std::string_view word, std::string_view rest, HostFacts& facts) {
  if (word == "host") {
    facts.host = launch::SafeHost(rest);
  } else if (word == "boot") {
    facts.boot_id = std::string(rest);
  } else if (word == "up") {
    facts.uptime_s = ParseSeconds(rest).value_or(0);
  } else if (word == "now") {
    if (const auto seconds = ParseSeconds(rest)) facts.now = absl::UnixEpoch() + absl::Seconds(*seconds);
  } else if (word == "free") {
    if (const auto kib = Parse<int64_t>(rest)) facts.free_bytes = *kib * 1024;
  } else {
    return false;
  }
  return true;
}

void TakeAnswer(std::string_view line, HostReply& reply) {
  std::string_view rest = line;
  const std::string_view word = TakeWord(rest);
  if (TakeFact(word, rest, reply.facts)) return;
  if (word == "norank") {
    reply.no_rank = true;
  } else if (word == "rank") {
    TakeRank(rest, reply);
  } else if (word == "mark") {
    TakeMark(rest, reply);
  } else if (word == "marks") {
    reply.marks_whole = true;
  } else if (word == "env") {
    TakeEnv(rest, reply);
  } else if (word == "cgroup") {
    reply.cgroup = std::string(rest);
  } else if (word == "storage") {
    reply.storage = std::string(rest);
  } else if (word == "nolinger") {
    reply.no_linger = true;
  } else if (word == "launched") {
    reply.launched = Parse<int>(rest);
  } else if (word == "late") {
    reply.late = std::string(rest);
  } else if (word == "gpu") {
    reply.gpu.emplace_back(rest);
  } else if (word == "why") {
    reply.why = std::string(rest);
  } else if (word == "copy") {
    reply.copies.emplace_back(rest);
  } else if (word == "copies") {
    reply.copies_whole = true;
  } else if (!line.empty()) {
    reply.words += reply.words.empty() ? "" : " ";
    reply.words += line;
  }
}

}  // namespace

FramedReply ParseFrame(std::string_view out, std::string_view token) {
  const std::string begin = fmt::format("\n{} begin\n", token);
  const size_t begins = out.find(begin);
  if (begins == std::string_view::npos) return {};
  FramedReply reply{.begun = true, .whole = {}};
  out.remove_prefix(begins + begin.size());
  const std::string end = fmt::format("\n{} end ", token);
  const size_t ends = out.rfind(end);
  if (ends == std::string_view::npos) return reply;
  std::string_view code = out.substr(ends + end.size());
  const size_t newline = code.find('\n');
  if (newline == std::string_view::npos) return reply;
  const std::optional<int> exit_code = Parse<int>(code.substr(0, newline));
  if (exit_code) reply.whole = RemoteReply{*exit_code, std::string(out.substr(0, ends))};
  return reply;
}

std::optional<HostReply> ParseReply(std::string_view out, bool facts) {
  HostReply reply;
  while (!out.empty()) TakeAnswer(TakeReplyLine(out), reply);
  if (facts && (reply.facts.host.empty() || reply.facts.boot_id.empty() || reply.facts.uptime_s <= 0)) {
    return std::nullopt;
  }
  return reply;
}

}  // namespace tp::node
