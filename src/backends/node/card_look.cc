#include "backends/node/card_look.h"

#include <algorithm>
#include <charconv>
#include <memory>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "absl/time/clock.h"
#include "backends/node/host_script.h"
#include "base/since_boot.h"

namespace tp::node {
namespace {

constexpr absl::Duration kHungPause = absl::Minutes(5);

// With two queries it is over long before a look is given up.
constexpr int kTenthsPerQuery = 30;
constexpr int kMostXids = 400;

constexpr std::string_view kCardsWord = "card ";
constexpr std::string_view kProcessWord = "process ";
constexpr std::string_view kXidWord = "xid ";
constexpr std::string_view kEndWord = "end";
constexpr std::string_view kHungWord = "hung";

// Facts that every answer begins with, which the look needs by itself where it is no part of another program.
constexpr std::string_view kFactsOfHost = R"sh(
read -r h </proc/sys/kernel/hostname
read -r b </proc/sys/kernel/random/boot_id
read -r u _ </proc/uptime
echo "host $h"
echo "boot $b"
echo "up $u"
)sh";

// The tool's exit code, from the line behind all that it printed; -1: it is missing, as where the disk is full.
int TakeStatus(std::string& text) {
  constexpr std::string_view kStatus = "status ";
  const size_t begin = text.size() < 2 ? std::string::npos : text.rfind('\n', text.size() - 2);
  const size_t line = begin == std::string::npos ? 0 : begin + 1;
  int status = -1;
  if (std::string_view(text).substr(line).starts_with(kStatus)) {
    std::from_chars(text.data() + line + kStatus.size(), text.data() + text.size(), status);
    text.resize(line);
  }
  return status;
}

}  // namespace

// A tool that hangs in the driver cannot be killed and would keep whoever waits for it: it is begun beside, with
// files of its own for its output, and left where it does not end.
std::string LookAtCardsPart() {
  return fmt::format(R"sh(
gpu_query() {{
  (
    {{
      timeout -k 1 {3} "$smi" "$2" {2}
      echo "status $?"
    }} >"$t/out" 2>&1
    mv "$t/out" "$t/done"
  ) >/dev/null 2>&1 </dev/null &
  i=0
  while [ ! -e "$t/done" ]; do
    [ "$i" -lt {4} ] || {{ echo "gpu hung"; return 1; }}
    i=$((i + 1))
    sleep 0.1
  done
  case $(tail -n 1 "$t/done") in "status 124" | "status 137") echo "gpu hung"; return 1 ;; esac
  sed "s/^/gpu $1 /" "$t/done"
  rm -f "$t/done"
}}
gpu_look() {{
  smi=$(
    PATH=$PATH:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
    command -v nvidia-smi
  ) || return 0
  t=$(mktemp -d "${{TMPDIR:-/tmp}}/tp-look.XXXXXX") || return 0
  if gpu_query card {0} && gpu_query process {1}; then
    dmesg 2>/dev/null | grep -F 'NVRM: Xid (' | tail -n {5} | sed 's/^/gpu xid /'
    echo "gpu end"
  fi
  rm -rf "$t"
}}
gpu_look
)sh",
                     launch::kGpuQuery, launch::kProcessQuery, launch::kQueryFormat, kTenthsPerQuery / 10 + 1,
                     kTenthsPerQuery, kMostXids);
}

std::string LookAtCardsProgram() { return std::string(kFactsOfHost) + LookAtCardsPart(); }

bool HungIn(const HostReply& reply) {
  return std::find(reply.gpu.begin(), reply.gpu.end(), kHungWord) != reply.gpu.end();
}

std::optional<launch::GpuLook> CardsIn(const HostReply& reply) {
  if (reply.gpu.empty() || reply.gpu.back() != kEndWord) return std::nullopt;
  std::map<std::string_view, std::string> texts;
  for (const std::string_view line : reply.gpu) {
    for (const std::string_view word : {kCardsWord, kProcessWord, kXidWord}) {
      if (line.starts_with(word)) texts[word].append(line.substr(word.size())).push_back('\n');
    }
  }
  const int cards = TakeStatus(texts[kCardsWord]);
  const int processes = TakeStatus(texts[kProcessWord]);
  launch::GpuLook look;
  look.report = launch::ParseGpuQuery(texts[kCardsWord], cards);
  if (look.report.cut_short.empty() && processes != 0) return std::nullopt;
  look.processes = launch::ParseGpuProcesses(texts[kProcessWord]);
  look.at = absl::Now();
  look.xids = launch::ParseXids(texts[kXidWord]);
  look.uptime_s = reply.facts.uptime_s;
  return look;
}

bool HasRealCards(const LaunchSpec& spec) {
  return std::any_of(spec.ranks.begin(), spec.ranks.end(),
                     [&](const RankLaunch& rank) { return !launch::RealCardsOf(spec, rank).empty(); });
}

std::vector<CardSight> CardLooks::Look(HostLinks& links, const std::vector<NodeCards>& nodes, absl::Time deadline) {
  std::vector<NodeCards> asked;
  for (const NodeCards& node : nodes) {
    const auto later = not_before_.find(node.node);
    if (later == not_before_.end() || later->second <= SinceBoot()) asked.push_back(node);
  }
  std::vector<HostAnswer> answers(asked.size());
  ForEachAtOnce(asked.size(), [&](size_t i) {
    const std::shared_ptr<HostLink> link = links.Of({asked[i].node, asked[i].address});
    answers[i] = link->Ask({.text = LookAtCardsProgram(), .body = {}}, deadline);
  });
  std::vector<CardSight> cards;
  for (size_t i = 0; i < asked.size(); ++i) {
    const auto* const reply = std::get_if<HostReply>(&answers[i]);
    if (reply == nullptr) continue;
    not_before_[asked[i].node] = HungIn(*reply) ? SinceBoot() + kHungPause : absl::ZeroDuration();
    if (const auto look = CardsIn(*reply)) launch::AddSights(*look, asked[i], cards);
  }
  return cards;
}

}  // namespace tp::node
