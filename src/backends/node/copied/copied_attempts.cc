#include "backends/node/copied/copied_attempts.h"

#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "absl/time/clock.h"
#include "backends/node/copied/copy_in.h"
#include "backends/node/copied/copy_out.h"
#include "backends/node/copied/pending_launch.h"
#include "backends/node/gang_launch.h"
#include "base/file.h"
#include "base/overloaded.h"
#include "base/status.h"
#include "launch/attempt_dir.h"
#include "launch/host.h"
#include "launch/record.h"

namespace tp::node {
namespace {

constexpr absl::Duration kGangLimit = absl::Minutes(2);
constexpr absl::Duration kSettleLimit = absl::Seconds(60);
constexpr absl::Duration kForgetItemAfter = absl::Minutes(10);

// Exit codes of tp-rank signal, docs/launch-contract.md.
constexpr int kSent = 0;
constexpr int kRunnerIsGone = 3;
constexpr int kNoClaim = 4;
constexpr int kAnotherBoot = 5;

std::vector<RankObservation> NothingOf(const AttemptTarget& target) {
  std::vector<RankObservation> ranks;
  for (size_t pool = 0; pool < target.ranks_per_pool.size(); ++pool) {
    for (int rank = 0; rank < target.ranks_per_pool[pool]; ++rank) {
      RankObservation seen;
      seen.pool = static_cast<int>(pool);
      seen.rank = rank;
      ranks.push_back(seen);
    }
  }
  return ranks;
}

struct RankPosition {
  int pool = 0;
  int rank = 0;
};
std::vector<RankPosition> PositionsOf(const AttemptTarget& target) {
  std::vector<RankPosition> positions;
  for (size_t pool = 0; pool < target.ranks_per_pool.size(); ++pool) {
    for (int rank = 0; rank < target.ranks_per_pool[pool]; ++rank) positions.push_back({static_cast<int>(pool), rank});
  }
  return positions;
}

absl::StatusOr<std::optional<launch::AttemptClaim>> ClaimHere(const AttemptTarget& target) {
  const absl::StatusOr<Directory> directory = OpenDirectory(target.attempt_dir);
  if (absl::IsNotFound(directory.status())) return std::optional<launch::AttemptClaim>();
  TP_RETURN_IF_ERROR(directory.status());
  TP_ASSIGN_OR_RETURN(const std::optional<std::string> bytes,
                      ReadSmallFile(*directory, launch::kAttemptClaim, launch::kMaxRecordBytes));
  if (!bytes) return std::optional<launch::AttemptClaim>();
  return launch::ParseAttemptClaim(*bytes, target.key);
}

bool IsThereIn(const AttemptTarget& target, const RankPosition& position, const char* suffix) {
  struct stat about {};
  return stat(fmt::format("{}/{}-{}{}", target.attempt_dir, position.pool, position.rank, suffix).c_str(), &about) == 0;
}

std::optional<launch::RankClaim> RankClaimHere(const AttemptTarget& target, const RankPosition& position) {
  const absl::StatusOr<Directory> directory = OpenDirectory(target.attempt_dir);
  if (!directory.ok()) return std::nullopt;
  const std::string name = fmt::format("{}-{}.claim", position.pool, position.rank);
  const auto bytes = ReadSmallFile(*directory, name, launch::kMaxRecordBytes);
  if (!bytes.ok() || !*bytes) return std::nullopt;
  return launch::ParseRankClaim(**bytes, {target.key, position.pool, position.rank});
}

// The copies bring one directory of a run there and back.
std::string WrongPaths(const LaunchSpec& spec) {
  const std::string run = RunDirectoryOf(spec.paths.attempt_dir);
  const bool good = spec.paths.output_dir == run + "/output" && spec.paths.results_dir.starts_with(run + "/results/");
  return good ? ""
              : fmt::format("the output {} is not where copies look for it: beneath {}", spec.paths.output_dir, run);
}

std::vector<Piece> PiecesIn(const HostReply& reply) {
  std::vector<Piece> pieces;
  for (const std::string& line : reply.copies) {
    if (std::optional<Piece> piece = ParsePiece(line)) pieces.push_back(*std::move(piece));
  }
  return pieces;
}

// An order that may still begin something there; empty: none.
std::string OrderOnItsWay(const Handover& handover, const HostFacts& facts, const std::string& node) {
  for (const OrderLimit& order : handover.orders) {
    if (order.node != node || order.boot_id != facts.boot_id) continue;
    const double left = static_cast<double>(order.latest_uptime_s) + 1 - facts.uptime_s;
    if (left > 0) return fmt::format("the order to start may still arrive at {} within {:.0f} s", node, left);
  }
  return "";
}

}  // namespace

bool CopiedAttempts::Item::under_way() const {
  return (launch && launch->under_way()) || (copy_out && copy_out->under_way());
}

CopiedAttempts::CopiedAttempts(CopiedOptions options, const SharedStorage& storage, HostLinks& links,
                               const RankBinary& binary, std::unique_ptr<Copier> copier,
                               std::function<void(const std::string& key)> wake)
    : options_(std::move(options)),
      storage_(storage),
      links_(links),
      binary_(binary),
      copier_(std::move(copier)),
      wake_(std::move(wake)),
      pending_(options_.data_directory + "/node-launches"),
      owed_(options_.data_directory + "/node-owed", binary, options_.storage_root) {}

void CopiedAttempts::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    for (const auto& [key, item] : items_) {
      const std::lock_guard held(item->mutex);
      if (item->launch) item->launch->CallOff();
      if (item->copy_out) item->copy_out->CallOff();
    }
  }
  copies_.reset();
}

CopySite CopiedAttempts::Site() { return {links_, *copier_, owed_, slots_, options_.storage_root}; }

std::shared_ptr<CopiedAttempts::Item> CopiedAttempts::ItemOf(const std::string& key) {
  const absl::Time now = absl::Now();
  const std::lock_guard lock(mutex_);
  std::shared_ptr<Item>& item = items_[key];
  if (!item) item = std::make_shared<Item>();
  item->used_at = now;
  const std::shared_ptr<Item> found = item;
  if (now - dropped_at_ > kForgetItemAfter) {
    dropped_at_ = now;
    std::erase_if(items_, [now](const auto& each) {
      return now - each.second->used_at > kForgetItemAfter && each.second.use_count() == 1 && !each.second->under_way();
    });
  }
  return found;
}

// An attempt that was claimed without having been handed over is of the time when storage was shared.
absl::StatusOr<std::optional<CopiedAttempts::Kind>> CopiedAttempts::KindOf(const AttemptTarget& target) const {
  TP_ASSIGN_OR_RETURN(std::optional<Handover> handover, ReadHandover(target.attempt_dir));
  if (handover) return std::optional(Kind{true, *std::move(handover)});
  if (!options_.by_default) return std::optional<Kind>();
  TP_ASSIGN_OR_RETURN(const std::optional<launch::AttemptClaim> claim, ClaimHere(target));
  if (claim && !claim->fenced) return std::optional<Kind>();
  return std::optional(Kind{});
}

// --- Launch ---------------------------------------------------------------------------------------------

LaunchResult CopiedAttempts::Launch(const LaunchSpec& spec) {
  if (const std::string wrong = WrongPaths(spec); !wrong.empty()) {
    return LaunchRejected{LaunchRejected::Kind::kStorage, wrong};
  }
  const absl::StatusOr<std::optional<Handover>> handover = ReadHandover(spec.paths.attempt_dir);
  if (!handover.ok()) return LaunchRefused{std::string(Message(handover.status()))};
  if (*handover && (*handover)->nonce.empty()) return LaunchRefused{fmt::format("{} was called off", spec.key)};
  if (*handover) return LaunchIndeterminate{fmt::format("a launch call of {} is handed over already", spec.key)};
  const std::shared_ptr<Item> item = ItemOf(spec.key);
  const std::lock_guard lock(item->mutex);
  if (item->launch && item->launch->under_way()) {
    return LaunchIndeterminate{fmt::format("another launch call of {} is under way", spec.key)};
  }
  absl::Status begun = KeepPendingLaunch(pending_, spec);
  if (begun.ok()) begun = BeginLaunch(spec, *item);
  if (!begun.ok()) return LaunchRefused{std::string(Message(begun))};
  return LaunchAccepted{};
}

absl::Status CopiedAttempts::BeginLaunch(const LaunchSpec& spec, Item& item) {
  TP_ASSIGN_OR_RETURN(item.launch, CopyJob::Make());
  copies_->Start([this, spec, job = item.launch] { CopyThenLaunch(spec, job); });
  return absl::OkStatus();
}

bool CopiedAttempts::GoOnWithLaunch(const AttemptTarget& target, Item& item) {
  const auto pending = FindPendingLaunch(pending_, target.key, target.nonce);
  return pending.ok() && *pending && BeginLaunch(**pending, item).ok();
}

void CopiedAttempts::CopyThenLaunch(const LaunchSpec& spec, const std::shared_ptr<CopyJob>& job) {
  std::string problem;
  const absl::Status copied = CopyIn(spec, Site(), *job);
  if (!copied.ok()) {
    problem = std::string(Message(copied));
  } else {
    const GangSite site{links_, binary_, options_.deployment, options_.storage_root, true};
    const LaunchResult result = LaunchGang(spec, site, absl::Now() + kGangLimit);
    problem = std::visit(Overloaded{[](const LaunchAccepted&) { return std::string(); },
                                    [](const LaunchRejected& rejected) { return rejected.reason; },
                                    [](const LaunchRefused& refused) { return refused.reason; },
                                    [](const LaunchIndeterminate&) { return std::string(); }},
                         result);
  }
  bool stopping = false;
  {
    const std::lock_guard lock(mutex_);
    stopping = stopping_;
  }
  if (!stopping) ForgetPendingLaunch(pending_, spec.key);
  job->End(problem);
  wake_(spec.key);
}

// --- Observation ----------------------------------------------------------------------------------------

// An attempt that is not handed over has nothing on any machine that runs or can.
Observation CopiedAttempts::NotHandedOver(const AttemptTarget& target, Item& item, bool launch_was_under_way,
                                          bool to_nobody) {
  if (const absl::Status there = storage_.root.Check(); !there.ok()) return Unknown{std::string(Message(there))};
  const bool goes_on = !item.launch && !to_nobody && GoOnWithLaunch(target, item);
  Present present;
  present.ranks = NothingOf(target);
  if ((launch_was_under_way || goes_on) && !to_nobody) {
    present.phase = EnginePhase::kWaiting;
    present.reason = item.launch->words();
    return present;
  }
  if (!item.launch && !to_nobody) return Absent{Claim::kNone, NothingOf(target)};
  present.phase = EnginePhase::kEnded;
  present.freed = true;
  present.reason = item.launch ? item.launch->words() : "";
  if (present.reason.empty()) present.reason = "it was called off before its machines were told to start it";
  return present;
}

void CopiedAttempts::Owe(const AttemptTarget& target, Item& item) {
  for (const RankHost& host : target.hosts) {
    if (!host.declared_dead || item.owed_to.contains(host.node)) continue;
    if (!owed_.Add(host, target).ok()) continue;
    item.owed_to.insert(host.node);
    // It may only have seemed dead.
    copies_->Start([this, host] { owed_.Settle(*links_.Of(host), absl::Now() + kSettleLimit).IgnoreError(); });
  }
}

CopiedAttempts::Sight CopiedAttempts::Before(const AttemptTarget& target) {
  Sight sight;
  const std::shared_ptr<Item> item = ItemOf(target.key);
  const std::lock_guard lock(item->mutex);
  if (item->mirror && storage_.root.Check().ok()) {
    Owe(target, *item);
    return {.copied = true, .known = std::nullopt, .mirror = item->mirror};
  }
  // Before its files are read: a launch that ends in between has handed it over behind what was read.
  sight.launch_under_way = item->launch && item->launch->under_way();
  const absl::StatusOr<std::optional<Kind>> kind = KindOf(target);
  if (!kind.ok()) return {.copied = true, .known = Unknown{std::string(Message(kind.status()))}, .mirror = nullptr};
  if (!*kind) return sight;
  sight.copied = true;
  const absl::StatusOr<std::optional<launch::AttemptClaim>> claim = ClaimHere(target);
  if (!claim.ok()) {
    sight.known = Unknown{std::string(Message(claim.status()))};
  } else if (*claim && (*claim)->fenced) {
    return sight;
  } else if (!(*kind)->made || (*kind)->handover.nonce.empty()) {
    sight.known = NotHandedOver(target, *item, sight.launch_under_way, (*kind)->made);
  } else {
    sight.mirror = std::make_shared<AttemptMirror>(target, (*kind)->handover);
    // Until then the call may take it back.
    if (!sight.launch_under_way) item->mirror = sight.mirror;
    Owe(target, *item);
  }
  return sight;
}

Observation CopiedAttempts::After(const AttemptTarget& target, const Sight& sight, Observation seen) {
  if (std::holds_alternative<Absent>(seen) && sight.launch_under_way) {
    Present present;
    present.phase = EnginePhase::kWaiting;
    present.cards_granted = true;
    present.ranks = NothingOf(target);
    present.reason = "its machines are told to start it";
    return present;
  }
  auto* present = std::get_if<Present>(&seen);
  const bool owned =
      present != nullptr && (present->claim == Claim::kThisLaunch || present->claim == Claim::kOtherLaunch);
  if (!owned || !present->freed) return seen;
  const std::shared_ptr<Item> item = ItemOf(target.key);
  const std::lock_guard lock(item->mutex);
  return Freed(target, *item, std::move(*present));
}

Observation CopiedAttempts::Freed(const AttemptTarget& target, Item& item, Present present) {
  if (!item.copied_out) {
    const absl::StatusOr<std::optional<CopiedOut>> done = ReadCopiedOut(target.attempt_dir);
    if (!done.ok()) return Unknown{std::string(Message(done.status()))};
    if (*done) item.copied_out = (*done)->lost_nodes;
  }
  if (!item.copied_out) {
    BeginCopyOut(target, item);
    present.freed = false;
    const std::string words = item.copy_out ? item.copy_out->words() : "its output is to be copied";
    present.reason += (present.reason.empty() ? "" : "; ") + words;
    return present;
  }
  if (item.copied_out->empty()) return present;
  present.engine_end = EngineEnd::kNodeLost;
  std::string nodes;
  for (const std::string& node : *item.copied_out) nodes += (nodes.empty() ? "" : " and ") + node;
  if (present.reason.empty()) present.reason = fmt::format("the output on {} was lost before it was copied", nodes);
  return present;
}

void CopiedAttempts::BeginCopyOut(const AttemptTarget& target, Item& item) {
  if (item.copy_out && item.copy_out->under_way()) {
    for (const RankHost& host : target.hosts) {
      if (host.declared_dead) item.copy_out->GiveUp(host.node);
    }
    return;
  }
  absl::StatusOr<std::shared_ptr<CopyJob>> job = CopyJob::Make();
  if (!job.ok()) return;
  for (const RankHost& host : target.hosts) {
    if (host.declared_dead) (*job)->GiveUp(host.node);
  }
  item.copy_out = *job;
  (*job)->Tell("", "copies its output");
  copies_->Start([this, target, job = *std::move(job)] {
    const absl::Status done = CopyOut(target, Site(), *job);
    job->End(done.ok() ? "" : fmt::format("its output could not be put in place: {}", Message(done)));
    wake_(target.key);
  });
}

// --- Fence ----------------------------------------------------------------------------------------------

std::vector<HostAnswer> CopiedAttempts::AskAll(const AttemptTarget& target,
                                               const std::function<std::string(size_t rank)>& program,
                                               absl::Time deadline) {
  std::vector<HostAnswer> answers(target.hosts.size());
  ForEachAtOnce(target.hosts.size(), [&](size_t i) {
    if (target.hosts[i].declared_dead) return;
    const std::string text = program(i);
    if (!text.empty()) answers[i] = links_.Of(target.hosts[i])->Ask({.text = text, .body = {}}, deadline);
  });
  return answers;
}

std::optional<FenceResult> CopiedAttempts::Fence(const AttemptTarget& target, absl::Time deadline) {
  const absl::StatusOr<std::optional<Kind>> kind = KindOf(target);
  if (!kind.ok()) return FenceFailed{std::string(Message(kind.status()))};
  if (!*kind) return std::nullopt;
  const absl::StatusOr<std::optional<launch::AttemptClaim>> claim = ClaimHere(target);
  if (!claim.ok()) return FenceFailed{std::string(Message(claim.status()))};
  if (*claim) return launch::FenceAttempt(target, options_.storage_root);
  // As long as it is handed over to nobody, no machine has been told to start anything; from here on none ever is.
  const absl::StatusOr<Handover> made =
      MakeHandover(target.attempt_dir, options_.storage_root, {.key = target.key, .nonce = ""});
  if (!made.ok()) return FenceFailed{std::string(Message(made.status()))};
  if (!made->nonce.empty()) return FenceHandedOver(target, *made, deadline);
  const std::shared_ptr<Item> item = ItemOf(target.key);
  {
    const std::lock_guard lock(item->mutex);
    if (item->launch) item->launch->CallOff();
  }
  return launch::FenceAttempt(target, options_.storage_root);
}

// Machines that share nothing are fenced one after the other, so that must not begin before none of them can claim any
// more: otherwise some of the ranks would run.
FenceResult CopiedAttempts::FenceHandedOver(const AttemptTarget& target, const Handover& handover,
                                            absl::Time deadline) {
  const std::vector<RankPosition> positions = PositionsOf(target);
  if (positions.size() != target.hosts.size()) {
    return FenceFailed{fmt::format("it is not known which machines run {}", target.key)};
  }
  const auto program = [&](size_t i) {
    MirrorQuestion question{.id = i, .attempt_dir = target.attempt_dir};
    question.pool = positions[i].pool;
    question.rank = positions[i].rank;
    question.attempt_claim = question.claim = true;
    return LookProgram(binary_, {}, true, options_.deployment) + MirrorProgram({question});
  };
  if (std::optional<FenceResult> found = LookForClaims(target, handover, AskAll(target, program, deadline))) {
    return *std::move(found);
  }
  const absl::Status fenced = FenceHosts(target, deadline);
  if (!fenced.ok()) return FenceFailed{std::string(Message(fenced))};
  return launch::FenceAttempt(target, options_.storage_root);
}

std::optional<FenceResult> CopiedAttempts::LookForClaims(const AttemptTarget& target, const Handover& handover,
                                                         const std::vector<HostAnswer>& answers) {
  std::string why_not_yet;
  for (size_t i = 0; i < answers.size(); ++i) {
    const RankHost& host = target.hosts[i];
    if (host.declared_dead) continue;
    if (const auto* silence = std::get_if<HostSilence>(&answers[i])) {
      why_not_yet = silence->why;
      continue;
    }
    const auto& reply = std::get<HostReply>(answers[i]);
    for (const Piece& piece : PiecesIn(reply)) {
      if (piece.kind != PieceKind::kAttemptClaim) continue;
      const auto claim = launch::ParseAttemptClaim(piece.bytes, target.key);
      if (claim && !claim->fenced) return FenceLost{claim->nonce};
    }
    if (!reply.marks_whole || !reply.copies_whole) why_not_yet = fmt::format("{} answered only in part", host.node);
    const auto is_of_it = [&](const Mark& mark) { return mark.text.starts_with(target.key + "/"); };
    if (std::any_of(reply.marks.begin(), reply.marks.end(), is_of_it)) {
      why_not_yet = fmt::format("{} is just starting it", host.node);
    }
    const std::string order = OrderOnItsWay(handover, reply.facts, host.node);
    if (!order.empty()) why_not_yet = order;
  }
  if (why_not_yet.empty()) return std::nullopt;
  return FenceFailed{why_not_yet};
}

absl::Status CopiedAttempts::FenceHosts(const AttemptTarget& target, absl::Time deadline) {
  TP_ASSIGN_OR_RETURN(const launch::HostIdentity here, launch::ReadHostIdentity());
  const std::string claim = launch::RenderFenceClaim(target.key, here.host, here.boot_id);
  const auto program = [&](size_t i) { return HostFenceProgram(i, target.attempt_dir, claim); };
  const std::vector<HostAnswer> answers = AskAll(target, program, deadline);
  for (size_t i = 0; i < answers.size(); ++i) {
    const RankHost& host = target.hosts[i];
    if (host.declared_dead) continue;
    if (const auto* silence = std::get_if<HostSilence>(&answers[i])) return Unavailable("{}", silence->why);
    bool fenced = false;
    for (const Piece& piece : PiecesIn(std::get<HostReply>(answers[i]))) {
      const auto found = launch::ParseAttemptClaim(piece.bytes, target.key);
      fenced = fenced || (found && found->fenced);
    }
    if (!fenced) return Unavailable("{} cannot be fenced on {}", target.key, host.node);
  }
  return absl::OkStatus();
}

// --- Orders ---------------------------------------------------------------------------------------------

std::optional<absl::Status> CopiedAttempts::Stop(const AttemptTarget& target, StopLevel level, absl::Time deadline) {
  const absl::StatusOr<std::optional<Kind>> kind = KindOf(target);
  if (!kind.ok()) return kind.status();
  if (!*kind) return std::nullopt;
  const std::shared_ptr<Item> item = ItemOf(target.key);
  if (!(*kind)->made && level == StopLevel::kKill) {
    const absl::Status called_off = CallOffUnsent(target, *item);
    // It has been handed over meanwhile.
    if (!absl::IsAlreadyExists(called_off)) return called_off;
  } else if (!(*kind)->made || (*kind)->handover.nonce.empty()) {
    return absl::OkStatus();
  }
  return Signal(target, level, deadline);
}

absl::Status CopiedAttempts::CallOffUnsent(const AttemptTarget& target, Item& item) const {
  if (absl::IsNotFound(OpenDirectory(target.attempt_dir).status())) return absl::OkStatus();  // never prepared
  TP_ASSIGN_OR_RETURN(const Handover made,
                      MakeHandover(target.attempt_dir, options_.storage_root, {.key = target.key, .nonce = ""}));
  if (!made.nonce.empty()) return Error(absl::StatusCode::kAlreadyExists, "{} is handed over", target.key);
  const std::lock_guard lock(item.mutex);
  if (item.launch) item.launch->CallOff();
  return absl::OkStatus();
}

absl::Status CopiedAttempts::Signal(const AttemptTarget& target, StopLevel level, absl::Time deadline) {
  const std::vector<RankPosition> positions = PositionsOf(target);
  if (positions.size() != target.hosts.size()) {
    return FailedPrecondition("it is not known which machines run {}", target.key);
  }
  std::vector<bool> told(positions.size());
  for (size_t i = 0; i < positions.size(); ++i) {
    told[i] = target.hosts[i].declared_dead || IsThereIn(target, positions[i], ".exit");
  }
  const auto program = [&](size_t i) {
    if (told[i]) return std::string();
    const RankQuestion rank{i, target.attempt_dir, positions[i].pool, positions[i].rank, "", 0, 0};
    return CopiedSignalProgram(binary_, target.attempt_dir, {rank}, level);
  };
  const std::vector<HostAnswer> answers = AskAll(target, program, deadline);
  std::string problems;
  const auto add = [&problems](const std::string& problem) { problems += (problems.empty() ? "" : "; ") + problem; };
  for (size_t i = 0; i < positions.size(); ++i) {
    if (told[i]) continue;
    if (const auto* silence = std::get_if<HostSilence>(&answers[i])) {
      add(silence->why);
      continue;
    }
    const auto& reply = std::get<HostReply>(answers[i]);
    const auto code = reply.ranks.find(i);
    const std::optional<launch::RankClaim> claim = RankClaimHere(target, positions[i]);
    const bool restarted = claim && claim->host == reply.facts.host && claim->boot_id != reply.facts.boot_id;
    const bool done =
        code != reply.ranks.end() && (code->second == kSent || code->second == kRunnerIsGone ||
                                      code->second == kNoClaim || (code->second == kAnotherBoot && restarted));
    if (!done) {
      add(fmt::format("{} cannot signal rank {}-{}", target.hosts[i].node, positions[i].pool, positions[i].rank));
    }
  }
  if (!problems.empty()) return Unavailable("not every rank was told: {}", problems);
  const absl::Status here = level == StopLevel::kKill   ? launch::CloseFence(target.attempt_dir)
                            : level == StopLevel::kWarn ? launch::AnnouncePause(target.attempt_dir)
                                                        : absl::OkStatus();
  return absl::IsNotFound(here) ? absl::OkStatus() : here;
}

// --- Afterwards -----------------------------------------------------------------------------------------

// What nobody has copied back yet stays.
absl::Status CopiedAttempts::Remove(const AttemptTarget& target, absl::Time deadline) {
  TP_ASSIGN_OR_RETURN(const std::optional<Kind> kind, KindOf(target));
  if (!kind) return absl::OkStatus();
  std::shared_ptr<Item> item;
  {
    const std::lock_guard lock(mutex_);
    const auto found = items_.find(target.key);
    if (found != items_.end()) item = found->second;
  }
  if (item) {
    const std::lock_guard lock(item->mutex);
    if (item->launch) item->launch->CallOff();
  }
  TP_ASSIGN_OR_RETURN(const std::optional<launch::AttemptClaim> claim, ClaimHere(target));
  TP_ASSIGN_OR_RETURN(const std::optional<CopiedOut> done, ReadCopiedOut(target.attempt_dir));
  if (claim && !claim->fenced && !done) return absl::OkStatus();
  if (!claim && !kind->made) return absl::OkStatus();  // nothing was ever sent, or its launch is under way
  const auto program = [&](size_t) { return RemoveCopyProgram(options_.storage_root, target.attempt_dir); };
  const std::vector<HostAnswer> answers = AskAll(target, program, deadline);
  for (size_t i = 0; i < answers.size(); ++i) {
    if (target.hosts[i].declared_dead) continue;
    if (const auto* silence = std::get_if<HostSilence>(&answers[i])) return Unavailable("{}", silence->why);
    const std::string& words = std::get<HostReply>(answers[i]).words;
    if (words != "removed") {
      return Unavailable("the files of {} cannot be removed from {}: {}", target.key, target.hosts[i].node, words);
    }
  }
  ForgetPendingLaunch(pending_, target.key);
  const absl::StatusOr<Directory> here = OpenDirectory(target.attempt_dir);
  if (here.ok()) TP_RETURN_IF_ERROR(RemoveTree(*here, ".copied"));
  return absl::OkStatus();
}

void CopiedAttempts::SettleOn(const RankHost& host) {
  const std::lock_guard lock(mutex_);
  if (stopping_) return;
  copies_->Start([this, host] { owed_.Settle(*links_.Of(host), absl::Now() + kSettleLimit).IgnoreError(); });
}

}  // namespace tp::node
