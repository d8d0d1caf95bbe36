#include "backends/node/host_link.h"

#include <utility>

#include <fmt/format.h>

#include "absl/time/clock.h"
#include "base/file.h"
#include "base/since_boot.h"

namespace tp::node {
namespace {

constexpr absl::Duration kDeliverLimit = absl::Seconds(60);

// Probes of hosts that went down together must not stay together.
uint64_t SeedOf(const RankHost& host) { return std::hash<std::string>{}(host.address); }

}  // namespace

HostLink::HostLink(RankHost host, RemoteShell& shell, const RankBinary& binary, std::function<void()> opened)
    : host_(std::move(host)), shell_(shell), binary_(binary), opened_(std::move(opened)), jitter_(SeedOf(host_)) {}

HostAnswer HostLink::Ask(const RemoteProgram& program, absl::Time deadline) {
  if (std::optional<std::string> why = WhyNot()) return HostSilence{*std::move(why), false};
  HostAnswer answer = RunOnce(program, deadline);
  const HostReply* reply = std::get_if<HostReply>(&answer);
  if (reply == nullptr || !reply->no_rank) return answer;
  if (std::optional<HostSilence> failed = Deliver(deadline)) return *std::move(failed);
  answer = RunOnce(program, deadline);
  reply = std::get_if<HostReply>(&answer);
  if (reply == nullptr || !reply->no_rank) return answer;
  return HostSilence{fmt::format("{} does not keep the tp-rank that was delivered to it", host_.node), false};
}

HostAnswer HostLink::Probe(absl::Time deadline) {
  return RunOnce({.text = ProbeProgram(binary_), .body = {}}, deadline);
}

HostAnswer HostLink::RunOnce(const RemoteProgram& program, absl::Time deadline) {
  const absl::Time asked = absl::Now();
  if (asked >= deadline) return HostSilence{fmt::format("no time was left to ask {}", host_.node), false};
  const RemoteResult result = shell_.Run(host_, program, deadline);
  if (const auto* failure = std::get_if<TransportFailure>(&result)) {
    Fail(*failure);
    return HostSilence{fmt::format("{} {}", host_.node, failure->why), failure->may_have_run};
  }
  const auto& whole = std::get<RemoteReply>(result);
  std::optional<HostReply> reply = ParseReply(whole.out);
  if (!reply) {
    const TransportFailure failure{TransportKind::kLost,
                                   "does not run what it is sent: a program ended without its answer", true};
    Fail(failure);
    return HostSilence{fmt::format("{} {}", host_.node, failure.why), true};
  }
  Learn(*reply, asked, absl::Now());
  return *std::move(reply);
}

std::optional<HostSilence> HostLink::Deliver(absl::Time deadline) {
  const std::lock_guard one(delivery_);
  std::string reasons;
  for (int place = 0; place < kRankPlaces; ++place) {
    const RemoteProgram program{.text = DeliverProgram(binary_, place, RandomName()), .body = binary_.bytes};
    const RemoteResult result = shell_.Run(host_, program, std::min(deadline, absl::Now() + kDeliverLimit));
    if (const auto* failure = std::get_if<TransportFailure>(&result)) {
      Fail(*failure);
      return HostSilence{fmt::format("{} {}", host_.node, failure->why), false};
    }
    const std::optional<HostReply> reply = ParseReply(std::get<RemoteReply>(result).out, false);
    if (reply && reply->words.starts_with("delivered ")) return std::nullopt;
    reasons += reasons.empty() ? "" : "; ";
    reasons += reply && !reply->why.empty() ? reply->why : "no reason was given";
  }
  return HostSilence{fmt::format("tp-rank cannot be put on {}: {}", host_.node, reasons), false};
}

void HostLink::Learn(const HostReply& reply, absl::Time asked, absl::Time answered) {
  bool opened = false;
  {
    const std::lock_guard lock(mutex_);
    opened = !circuit_.closed();
    circuit_.Succeeded(answered);
    asked_ = true;
    HostFacts facts = reply.facts;
    if (facts_ && facts_->boot_id == facts.boot_id) {
      if (!facts.free_bytes) facts.free_bytes = facts_->free_bytes;
    } else {
      cgroup_.clear();
    }
    if (facts.now) clock_offset_ = *facts.now - (asked + (answered - asked) / 2);
    if (!reply.cgroup.empty()) cgroup_ = reply.cgroup;
    facts_ = std::move(facts);
  }
  if (opened) opened_();
}

void HostLink::Fail(const TransportFailure& failure) {
  if (failure.kind == TransportKind::kCancelled) return;
  const std::lock_guard lock(mutex_);
  asked_ = true;
  circuit_.Failed(absl::Now(), failure.why, static_cast<double>(jitter_.Between(0, 1000)) / 1000);
  probe_at_ = SinceBoot() + circuit_.pause();
}

std::optional<std::string> HostLink::WhyNot() const {
  const std::lock_guard lock(mutex_);
  if (circuit_.closed()) return std::nullopt;
  return circuit_.Sentence(host_.node, absl::Now());
}

absl::Duration HostLink::NextProbe() const {
  const std::lock_guard lock(mutex_);
  return circuit_.closed() ? absl::InfiniteDuration() : probe_at_;
}

std::optional<HostFacts> HostLink::facts() const {
  const std::lock_guard lock(mutex_);
  return facts_;
}

std::string HostLink::cgroup() const {
  const std::lock_guard lock(mutex_);
  return cgroup_;
}

NodeSight HostLink::Status() const {
  const absl::Time now = absl::Now();
  const std::lock_guard lock(mutex_);
  NodeSight sight;
  sight.node = host_.node;
  sight.since = now;
  if (!asked_) {
    sight.why = fmt::format("{} was not asked yet", host_.node);
    return sight;
  }
  sight.reachable = circuit_.closed();
  sight.since = circuit_.since();
  if (!sight.reachable) sight.why = circuit_.Sentence(host_.node, now);
  sight.clock_offset = clock_offset_;
  if (facts_) {
    sight.disk_free_bytes = facts_->free_bytes;
    sight.boot_id = facts_->boot_id;
  }
  return sight;
}

}  // namespace tp::node
