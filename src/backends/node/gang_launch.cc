#include "backends/node/gang_launch.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "absl/time/clock.h"
#include "backends/node/attempt_watch.h"
#include "backends/node/card_look.h"
#include "backends/node/copied/handover.h"
#include "backends/node/copied/mirror_script.h"
#include "base/fault_point.h"
#include "base/file.h"
#include "base/status.h"
#include "launch/attempt_dir.h"
#include "launch/engine_call.h"
#include "launch/rank_plan.h"

namespace tp::node {
namespace {

// Together below kLaunchValid, so that what is accepted was also in time there.
constexpr absl::Duration kPrepareLimit = absl::Seconds(30);
constexpr absl::Duration kStartLimit = absl::Seconds(20);

// Exit codes of tp-rank launch, docs/launch-contract.md.
constexpr int kAllForked = 0;
constexpr int kBadPlan = 64;
constexpr int kNothingStarted = 75;

// The file by which machines recognize the attempt directory, and what they leave in answer.
class SharedFile {
 public:
  static absl::StatusOr<SharedFile> Make(const std::string& attempt_dir) {
    SharedFile file;
    file.token_ = RandomName();
    TP_ASSIGN_OR_RETURN(file.directory_, OpenDirectory(attempt_dir));
    TP_RETURN_IF_ERROR(ReplaceFile(file.directory_, ".shared." + file.token_, file.token_, 0660, Sync::kNone));
    return file;
  }
  SharedFile(SharedFile&&) = default;
  SharedFile& operator=(SharedFile&&) = delete;
  ~SharedFile() {
    if (!directory_.fd.valid()) return;
    for (const char* prefix : {".shared.", ".back."}) unlinkat(directory_.fd.get(), (prefix + token_).c_str(), 0);
  }

  const std::string& token() const { return token_; }

 private:
  SharedFile() = default;

  std::string token_;
  Directory directory_;
};

std::string CopiedStorageProblem(const std::string& said, const std::string& node, const std::string& root) {
  if (said == "shared") {
    return fmt::format(
        "{} sees in {} what tpd sees there, so nothing is to be copied: set backends.node.storage to shared", node,
        root);
  }
  if (said == "noroot" || said == "nodirectory") {
    return fmt::format("{} no longer has what was copied to it beneath {}", node, root);
  }
  if (said.starts_with("nowrite")) return fmt::format("{} cannot write to {}{}", node, root, said.substr(7));
  return fmt::format("{} does not say whether it has the job's files", node);
}

std::string StorageProblem(const std::string& said, const HostShare& share, const std::string& root) {
  const std::string& node = share.host.node;
  if (said == "noroot") {
    return fmt::format("{} has no directory {}: mount the jobs' storage there, at the same path as on tpd's machine",
                       node, root);
  }
  if (said == "nodirectory" || said == "other") {
    return fmt::format("{} does not see in {} what tpd sees there: mount the same storage on both", node, root);
  }
  if (said.starts_with("nowrite")) {
    return fmt::format("{} cannot write to the jobs' storage{}", node, said.substr(7));
  }
  return fmt::format("{} does not say whether it sees the jobs' storage", node);
}

// What keeps a machine from taking its ranks; empty: nothing.
std::string Problem(const HostAnswer& answer, const HostShare& share, const GangSite& site) {
  if (const auto* silence = std::get_if<HostSilence>(&answer)) return silence->why;
  const auto& reply = std::get<HostReply>(answer);
  if (reply.no_linger) {
    return fmt::format(
        "{} ends all processes of a user at the end of the login (KillUserProcesses): run `loginctl "
        "enable-linger` there for the user of the jobs",
        share.host.node);
  }
  if (reply.storage != "ok") {
    return site.copied ? CopiedStorageProblem(reply.storage, share.host.node, site.storage_root)
                       : StorageProblem(reply.storage, share, site.storage_root);
  }
  const std::optional<launch::GpuLook> look = CardsIn(reply);
  return look ? launch::PreflightProblem(*look, share.spec) : "";
}

enum class Started { kYes, kNo, kNever, kUnclear };

struct HostStart {
  Started started = Started::kUnclear;
  std::string why;
};

HostStart JudgeStart(const HostAnswer& answer, const std::string& node) {
  if (const auto* silence = std::get_if<HostSilence>(&answer)) {
    return {silence->may_have_run ? Started::kUnclear : Started::kNo, silence->why};
  }
  const auto& reply = std::get<HostReply>(answer);
  if (!reply.late.empty()) return {Started::kNo, fmt::format("{} did not start it: {}", node, reply.late)};
  if (!reply.launched) return {Started::kUnclear, fmt::format("{} does not say whether it started it", node)};
  const std::string words = fmt::format("{}: tp-rank launch ended with {}: {}", node, *reply.launched, reply.words);
  switch (*reply.launched) {
    case kAllForked:
      return {Started::kYes, ""};
    case kBadPlan:
      return {Started::kNever, words};
    case kNothingStarted:
      return {Started::kNo, words};
    default:
      return {Started::kUnclear, words};
  }
}

class Gang {
 public:
  Gang(const LaunchSpec& spec, const GangSite& site) : spec_(spec), site_(site), shares_(ShareOut(spec)) {}

  LaunchResult Launch(absl::Time deadline) {
    if (std::optional<std::string> problem = PrepareAll(std::min(deadline, absl::Now() + kPrepareLimit))) {
      return LaunchRefused{*std::move(problem)};
    }
    ReachFaultPoint(FaultPoint::kBeforeHandOver);
    if (std::optional<LaunchResult> other = HandOver()) return *std::move(other);
    StartAll(std::min(deadline, absl::Now() + kStartLimit));
    ReachFaultPoint(FaultPoint::kAfterHandOver);
    return Conclude(deadline);
  }

 private:
  std::optional<std::string> PrepareAll(absl::Time deadline) {
    const absl::StatusOr<SharedFile> file = SharedFile::Make(spec_.paths.attempt_dir);
    if (!file.ok()) return std::string(Message(file.status()));
    const std::string program = PrepareProgram(site_.binary, {.deployment = site_.deployment,
                                                              .storage_root = site_.storage_root,
                                                              .attempt_dir = spec_.paths.attempt_dir,
                                                              .token = file->token(),
                                                              .copied = site_.copied});
    std::vector<HostAnswer> answers(shares_.size());
    ForEachAtOnce(shares_.size(), [&](size_t i) {
      const std::string look = HasRealCards(shares_[i].spec) ? LookAtCardsPart() : "";
      answers[i] = site_.links.Of(shares_[i].host)->Ask({.text = program + look, .body = {}}, deadline);
    });
    std::string problems;
    for (size_t i = 0; i < shares_.size(); ++i) {
      const std::string problem = Problem(answers[i], shares_[i], site_);
      if (!problem.empty()) problems += (problems.empty() ? "" : "; ") + problem;
    }
    if (!problems.empty()) return problems;
    for (HostAnswer& answer : answers) ready_.push_back(std::get<HostReply>(std::move(answer)));
    return std::nullopt;
  }

  // Nothing: it is this call's.
  std::optional<LaunchResult> HandOver() {
    if (!site_.copied) return std::nullopt;
    Handover handover{.key = spec_.key, .nonce = spec_.nonce, .log_max_bytes = spec_.log_max_bytes};
    for (size_t i = 0; i < shares_.size(); ++i) {
      handover.orders.push_back({shares_[i].host.node, ready_[i].facts.boot_id, LatestUptime(ready_[i])});
    }
    const absl::StatusOr<Handover> made = MakeHandover(spec_.paths.attempt_dir, site_.storage_root, handover);
    // What could not be read back may be there: nothing was sent, but that is for a fence to find out.
    if (!made.ok()) return LaunchIndeterminate{std::string(Message(made.status()))};
    if (made->nonce == spec_.nonce) return std::nullopt;
    if (made->nonce.empty()) return LaunchRefused{fmt::format("{} was called off before its launch", spec_.key)};
    return LaunchIndeterminate{fmt::format("another launch call of {} is handed over", spec_.key)};
  }

  // Nothing of it has started or can.
  LaunchResult NotStarted(LaunchResult result) const {
    if (!site_.copied) return result;
    const absl::Status back = TakeHandoverBack(spec_.paths.attempt_dir, spec_.nonce);
    return back.ok() ? result : LaunchIndeterminate{fmt::format("{}; {}", Reasons(), Message(back))};
  }

  static int64_t LatestUptime(const HostReply& ready) {
    return static_cast<int64_t>(std::floor(ready.facts.uptime_s)) + absl::ToInt64Seconds(kLaunchValid) - 1;
  }

  void StartAll(absl::Time deadline) {
    starts_.resize(shares_.size());
    ForEachAtOnce(shares_.size(), [&](size_t i) {
      starts_[i] = JudgeStart(site_.links.Of(shares_[i].host)->Ask(OrderFor(i), deadline), shares_[i].host.node);
    });
  }

  RemoteProgram OrderFor(size_t i) const {
    const HostReply& ready = ready_[i];
    const launch::PlanOptions plan{.cgroup_parent = ready.cgroup, .base_env = ready.env};
    LaunchRequest request{.key = spec_.key,
                          .nonce = spec_.nonce,
                          .boot_id = ready.facts.boot_id,
                          .latest_uptime_s = LatestUptime(ready),
                          .cgroup_of_attempt = launch::CgroupOfAttempt(ready.cgroup, spec_.key)};
    return {.text = LaunchProgram(site_.binary, request), .body = launch::RenderPlan(shares_[i].spec, plan)};
  }

  bool All(Started started) const {
    return std::all_of(starts_.begin(), starts_.end(),
                       [=](const HostStart& start) { return start.started == started; });
  }
  bool Any(Started started) const {
    return std::any_of(starts_.begin(), starts_.end(),
                       [=](const HostStart& start) { return start.started == started; });
  }

  std::string Reasons() const {
    std::string reasons;
    for (const HostStart& start : starts_) {
      if (!start.why.empty()) reasons += (reasons.empty() ? "" : "; ") + start.why;
    }
    return reasons;
  }

  LaunchResult Conclude(absl::Time deadline) {
    if (All(Started::kYes)) return LaunchAccepted{};
    if (All(Started::kNever)) return NotStarted(LaunchRejected{LaunchRejected::Kind::kEngine, Reasons()});
    if (!Any(Started::kYes) && !Any(Started::kUnclear)) return NotStarted(LaunchRefused{Reasons()});
    // As long as no machine is known to lack its ranks, all may run: the records and the machines will tell.
    if (!Any(Started::kNo) && !Any(Started::kNever)) return LaunchIndeterminate{Reasons()};
    return CallOff(deadline);
  }

  // Some have started and others never will. Where no rank has claimed yet, none will begin its job.
  LaunchResult CallOff(absl::Time deadline) {
    if (site_.copied) return CallOffCopied(deadline);
    const AttemptTarget target = launch::TargetOf(spec_);
    if (std::holds_alternative<FenceWon>(launch::FenceAttempt(target, site_.storage_root))) {
      return LaunchRefused{Reasons()};
    }
    const absl::Status closed = launch::CloseFence(spec_.paths.attempt_dir);
    ForEachAtOnce(shares_.size(), [&](size_t i) {
      if (starts_[i].started == Started::kYes) KillShare(shares_[i], deadline);
    });
    return LaunchIndeterminate{fmt::format("not every machine took its ranks, so the others were ended: {}{}",
                                           Reasons(), closed.ok() ? "" : fmt::format("; {}", Message(closed)))};
  }

  // A rank that claims on a machine whose fence is closed begins nothing.
  LaunchResult CallOffCopied(absl::Time deadline) {
    std::vector<HostAnswer> answers(shares_.size());
    ForEachAtOnce(shares_.size(), [&](size_t i) {
      const std::string text =
          CopiedSignalProgram(site_.binary, spec_.paths.attempt_dir, RanksOf(shares_[i]), StopLevel::kKill);
      answers[i] = site_.links.Of(shares_[i].host)->Ask({.text = text, .body = {}}, deadline);
    });
    const bool all_told = std::all_of(answers.begin(), answers.end(), [](const HostAnswer& answer) {
      return std::holds_alternative<HostReply>(answer);
    });
    // Closed here says closed everywhere.
    if (all_told) launch::CloseFence(spec_.paths.attempt_dir).IgnoreError();
    return LaunchIndeterminate{
        fmt::format("not every machine took its ranks, so the others were ended: {}", Reasons())};
  }

  std::vector<RankQuestion> RanksOf(const HostShare& share) const {
    std::vector<RankQuestion> ranks;
    for (const RankLaunch& rank : share.spec.ranks) {
      ranks.push_back({ranks.size(), spec_.paths.attempt_dir, rank.pool, rank.rank, "", 0, 0});
    }
    return ranks;
  }

  // What is not reached ends by the fence, at its next heartbeat.
  void KillShare(const HostShare& share, absl::Time deadline) const {
    site_.links.Of(share.host)
        ->Ask({.text = SignalProgram(site_.binary, RanksOf(share), StopLevel::kKill), .body = {}}, deadline);
  }

  const LaunchSpec& spec_;
  const GangSite& site_;
  const std::vector<HostShare> shares_;
  std::vector<HostReply> ready_;   // as shares_
  std::vector<HostStart> starts_;  // as shares_
};

}  // namespace

std::vector<HostShare> ShareOut(const LaunchSpec& spec) {
  std::vector<HostShare> shares;
  for (const RankLaunch& rank : spec.ranks) {
    const RankHost host{rank.placement.node, rank.placement.address};
    auto share = std::find_if(shares.begin(), shares.end(), [&](const HostShare& each) { return each.host == host; });
    if (share == shares.end()) {
      shares.push_back({host, spec});
      share = std::prev(shares.end());
      share->spec.ranks.clear();
    }
    share->spec.ranks.push_back(rank);
  }
  return shares;
}

LaunchResult LaunchGang(const LaunchSpec& spec, const GangSite& site, absl::Time deadline) {
  return Gang(spec, site).Launch(deadline);
}

}  // namespace tp::node
