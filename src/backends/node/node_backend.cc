#include "backends/node/node_backend.h"

#include <sys/stat.h>
#include <sys/vfs.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "absl/time/clock.h"
#include "backends/node/copied/mirror_script.h"
#include "backends/node/copied/rsync_copier.h"
#include "backends/node/gang_launch.h"
#include "backends/node/inventory.h"
#include "base/fault_point.h"
#include "base/file.h"
#include "base/sha256.h"
#include "base/status.h"
#include "launch/attempt_dir.h"
#include "launch/engine_call.h"
#include "launch/rank_plan.h"

namespace tp::node {
namespace {

// An attempt that nobody asked about for this long is over; asked again, it is read anew.
constexpr absl::Duration kForgetAfter = absl::Minutes(10);
constexpr absl::Duration kForgetEvery = absl::Minutes(1);
constexpr size_t kMostMachines = 8;

// A look's own limit, and how long those who wait for several machines wait for the slower ones.
constexpr absl::Duration kLookLimit = absl::Seconds(5);
constexpr absl::Duration kLookPatience = absl::Milliseconds(1500);

// Of network filesystems whose clients remember what a directory held (DESIGN 5.9).
constexpr absl::Duration kNetworkVisibility = absl::Seconds(70);

constexpr int kSignalSent = 0;
constexpr int kRunnerGone = 3;
constexpr int kNotClaimed = 4;
constexpr int kOtherBoot = 5;
// Of tp-rank reap.
constexpr int kRunnerIsThere = 6;

absl::Duration VisibilityOf(const std::string& root) {
  // Local disks show at once what other namespaces of this machine write.
  constexpr std::array<uint32_t, 7> kLocal = {0xEF53 /* ext */,
                                              0x58465342 /* xfs */,
                                              0x9123683E /* btrfs */,
                                              0x01021994 /* tmpfs */,
                                              0x794C7630 /* overlay */,
                                              0x2FC12FC1 /* zfs */,
                                              0xF2F52010 /* f2fs */};
  struct statfs about {};
  if (statfs(root.c_str(), &about) != 0) return kNetworkVisibility;
  const auto type = static_cast<uint32_t>(about.f_type);
  return std::find(kLocal.begin(), kLocal.end(), type) != kLocal.end() ? absl::ZeroDuration() : kNetworkVisibility;
}

absl::StatusOr<RankBinary> ReadRankBinary(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  RankBinary binary;
  binary.bytes.assign(std::istreambuf_iterator<char>(file), {});
  if (!file || binary.bytes.empty()) return NotFound("the runner {} cannot be read: install it with tpd", path);
  Sha256 hash;
  hash.Update(binary.bytes);
  binary.sha256 = hash.HexDigest();
  return binary;
}

absl::StatusOr<SharedStorage> ProveStorage(const NodeOptions& options) {
  TP_ASSIGN_OR_RETURN(launch::StorageRoot root, launch::StorageRoot::Open(options.storage_root));
  return SharedStorage{
      .root = std::move(root), .visibility = VisibilityOf(options.storage_root), .reader = options.reader};
}

std::string WithoutSlashes(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path;
}

// Machines have the jobs' files at the paths that tpd has them at.
absl::Status CheckExecutor(const std::string& config, const std::string& storage_root) {
  if (config.empty()) return absl::OkStatus();
  const nlohmann::json json = nlohmann::json::parse(config, nullptr, false);
  if (!json.is_object()) return InvalidArgument("executor_config: not a JSON object");
  const auto storage = json.find("storage");
  if (storage == json.end() || !storage->is_object()) return absl::OkStatus();
  for (const char* name : {"path", "tpd_path"}) {
    const auto path = storage->find(name);
    if (path == storage->end() || !path->is_string()) continue;
    if (WithoutSlashes(path->get<std::string>()) == storage_root) continue;
    return InvalidArgument(
        "storage.{}: '{}' is not storage.root {}: the node backend needs the jobs' files at the same path on tpd's "
        "machine and on all others",
        name, path->get<std::string>(), storage_root);
  }
  return absl::OkStatus();
}

absl::Status CheckPlacement(const LaunchSpec& spec) {
  std::set<std::string> nodes;
  for (const RankLaunch& rank : spec.ranks) {
    if (rank.pool != 0) return InvalidArgument("ranks: the node backend runs one pool, not several");
    if (rank.placement.node.empty() || rank.placement.address.empty()) {
      return InvalidArgument("ranks: rank {}-{} has no machine: give the series' nodes an address", rank.pool,
                             rank.rank);
    }
    nodes.insert(rank.placement.node);
  }
  if (nodes.size() <= kMostMachines) return absl::OkStatus();
  return InvalidArgument("ranks: {} machines, the node backend runs a job on {} at most", nodes.size(), kMostMachines);
}

}  // namespace

absl::StatusOr<std::unique_ptr<NodeBackend>> NodeBackend::Create(NodeOptions options) {
  TP_ASSIGN_OR_RETURN(
      std::unique_ptr<SshShell> shell,
      SshShell::Create(options.ssh, WithoutSlashes(options.data_directory) + "/ssh", options.connect_timeout));
  // The shell outlives the copier: the backend has both.
  auto copier =
      std::make_unique<RsyncCopier>([&shell = *shell](const RankHost& host) { return shell.WordsForCopies(host); });
  return CreateOver(std::move(options), std::move(shell), std::move(copier));
}

absl::StatusOr<std::unique_ptr<NodeBackend>> NodeBackend::CreateOver(NodeOptions options,
                                                                     std::unique_ptr<RemoteShell> shell,
                                                                     std::unique_ptr<Copier> copier) {
  TP_ASSIGN_OR_RETURN(SharedStorage storage, ProveStorage(options));
  options.storage_root = storage.root.path();
  TP_ASSIGN_OR_RETURN(RankBinary binary, ReadRankBinary(options.rank_binary));
  return std::unique_ptr<NodeBackend>(
      new NodeBackend(std::move(options), std::move(storage), std::move(binary), std::move(shell), std::move(copier)));
}

NodeBackend::NodeBackend(NodeOptions options, SharedStorage storage, RankBinary binary,
                         std::unique_ptr<RemoteShell> shell, std::unique_ptr<Copier> copier)
    : options_(std::move(options)),
      storage_(std::move(storage)),
      binary_(std::move(binary)),
      shell_(std::move(shell)),
      links_(*shell_, binary_, options_.connect_timeout + kLookLimit, [this](const RankHost& host) {
        WakeRanksOn(host);
        copied_->SettleOn(host);
      }) {
  const CopiedOptions copied{.by_default = options_.copied,
                             .deployment = options_.deployment,
                             .storage_root = options_.storage_root,
                             .data_directory = WithoutSlashes(options_.data_directory)};
  copied_ = std::make_unique<CopiedAttempts>(copied, storage_, links_, binary_, std::move(copier),
                                             [this](const std::string& key) { Wake(key); });
}

NodeBackend::~NodeBackend() {
  shell_->Cancel();
  copied_->Stop();
}

Capabilities NodeBackend::capabilities() const {
  return {.several_pools = false,
          .max_nodes = static_cast<int>(kMostMachines),
          .unique_names = true,
          .allocates_cards = false};
}

absl::Status NodeBackend::Validate(const LaunchSpec& spec) const {
  if (!spec.image.empty()) {
    return InvalidArgument("image: the node backend runs processes of its machines, not the image '{}'", spec.image);
  }
  TP_RETURN_IF_ERROR(launch::CheckSpec(spec));
  TP_RETURN_IF_ERROR(CheckPlacement(spec));
  return CheckExecutor(spec.executor_config, options_.storage_root);
}

std::string NodeBackend::Render(const LaunchSpec& spec) const {
  return launch::DescribePlan(spec, {.cgroup_parent = {}, .base_env = {}});
}

void NodeBackend::SetWake(std::function<void(const std::string& key)> wake) {
  const std::lock_guard lock(mutex_);
  wake_ = std::move(wake);
}

void NodeBackend::Wake(const std::string& key) {
  std::function<void(const std::string& key)> wake;
  {
    const std::lock_guard lock(mutex_);
    wake = wake_;
  }
  if (wake) wake(key);
}

void NodeBackend::WakeRanksOn(const RankHost& host) {
  std::vector<std::string> keys;
  std::function<void(const std::string& key)> wake;
  {
    const std::lock_guard lock(mutex_);
    wake = wake_;
    for (const auto& [key, entry] : entries_) {
      const std::vector<RankHost>& hosts = entry->watch->target().hosts;
      if (std::find(hosts.begin(), hosts.end(), host) != hosts.end()) keys.push_back(key);
    }
  }
  if (!wake) return;
  for (const std::string& key : keys) wake(key);
}

std::shared_ptr<NodeBackend::Entry> NodeBackend::EntryOf(const AttemptTarget& target) {
  const absl::Time now = absl::Now();
  const std::lock_guard lock(mutex_);
  DropUnused(now);
  std::shared_ptr<Entry>& entry = entries_[target.key];
  if (!entry || !entry->watch->IsAbout(target)) {
    entry = std::make_shared<Entry>();
    entry->watch = std::make_unique<AttemptWatch>(storage_, target);
  }
  entry->used_at = now;
  return entry;
}

void NodeBackend::DropUnused(absl::Time now) {
  if (now - dropped_at_ < kForgetEvery) return;
  dropped_at_ = now;
  std::erase_if(entries_, [now](const auto& item) { return now - item.second->used_at > kForgetAfter; });
}

LaunchResult NodeBackend::Launch(const LaunchSpec& spec, absl::Time deadline) {
  if (const absl::Status status = Validate(spec); !status.ok()) {
    return LaunchRejected{LaunchRejected::Kind::kEngine, std::string(Message(status))};
  }
  const absl::Status prepared = launch::PrepareAttempt(spec, options_.storage_root);
  if (!prepared.ok()) return launch::RefusalOf(prepared);
  const std::shared_ptr<Entry> entry = EntryOf(launch::TargetOf(spec));
  {
    const std::lock_guard lock(entry->mutex);
    const absl::StatusOr<Claim> claim = entry->watch->ReadClaim(spec.nonce);
    if (!claim.ok()) return LaunchRefused{std::string(Message(claim.status()))};
    if (*claim == Claim::kFenced) return LaunchRefused{fmt::format("{} was fenced before its launch", spec.key)};
  }
  if (copied_->by_default()) return copied_->Launch(spec);
  // Another owner's claim is no reason to stop: the ranks find it, leave, and the observation tells.
  const GangSite site{links_, binary_, options_.deployment, options_.storage_root};
  return LaunchGang(spec, site, deadline);
}

// What is asked and answered in one Observe call. Shared with looks that come too late for it.
struct NodeBackend::Round {
  struct HostLook {
    std::shared_ptr<HostLink> link;
    std::vector<RankQuestion> questions;
    std::vector<MirrorQuestion> mirrors;
    bool marks = false;
    std::optional<HostAnswer> answer;
    bool overdue = false;
  };
  struct Asked {
    size_t target = 0;
    size_t rank = 0;
    size_t look = 0;
    bool runner = false;
  };
  struct Mirrored {
    size_t target = 0;
    size_t rank = 0;
    size_t look = 0;
    std::shared_ptr<AttemptMirror> mirror;
  };

  std::mutex mutex;
  std::condition_variable answered;
  size_t pending = 0;
  std::vector<HostLook> looks;
  std::vector<Asked> asked;        // the index is the question's id
  std::vector<Mirrored> mirrored;  // the same

  size_t LookAt(const std::shared_ptr<HostLink>& link) {
    const auto found =
        std::find_if(looks.begin(), looks.end(), [&](const HostLook& look) { return look.link == link; });
    if (found != looks.end()) return static_cast<size_t>(found - looks.begin());
    looks.push_back({link, {}, {}, false, {}, false});
    return looks.size() - 1;
  }

  void Add(size_t target, AttemptWatch::Question question, const std::shared_ptr<HostLink>& link) {
    const size_t at = LookAt(link);
    const size_t id = asked.size();
    asked.push_back({target, question.rank, at, question.runner.has_value()});
    if (question.runner) {
      question.runner->id = id;
      looks[at].questions.push_back(*std::move(question.runner));
    }
    looks[at].marks = looks[at].marks || question.marks;
  }

  void AddMirror(size_t target, size_t rank, MirrorQuestion question, const std::shared_ptr<AttemptMirror>& mirror,
                 const std::shared_ptr<HostLink>& link) {
    question.id = mirrored.size();
    const size_t at = LookAt(link);
    looks[at].mirrors.push_back(std::move(question));
    mirrored.push_back({target, rank, at, mirror});
  }

  // Puts what came of an attempt's files in place, before anything is concluded from the answers.
  void TakeFiles(size_t target, std::map<size_t, AttemptWatch::Answer>& answers) {
    for (size_t id = 0; id < mirrored.size(); ++id) {
      const Mirrored& each = mirrored[id];
      const auto answer = answers.find(each.rank);
      if (each.target != target || answer == answers.end() || answer->second.silence) continue;
      const std::string& node = looks[each.look].link->host().node;
      const absl::Status taken = each.mirror->Take(each.rank, PiecesOf(id));
      if (!taken.ok()) answer->second.silence = HostSilence{fmt::format("{}: {}", node, Message(taken)), false};
      // Its end is to be seen by its record.
      if (each.mirror->KeepsEndBack(each.rank)) answer->second.code = kRunnerIsThere;
    }
  }

  std::vector<Piece> PiecesOf(size_t id) {
    std::vector<Piece> pieces;
    const std::lock_guard lock(mutex);
    const HostLook& look = looks[mirrored[id].look];
    if (!look.answer || !std::holds_alternative<HostReply>(*look.answer)) return pieces;
    for (const std::string& line : std::get<HostReply>(*look.answer).copies) {
      if (!line.starts_with(fmt::format("{} ", id))) continue;
      if (std::optional<Piece> piece = ParsePiece(line)) pieces.push_back(*std::move(piece));
    }
    return pieces;
  }

  void Take(size_t at, HostAnswer answer) {
    const std::lock_guard lock(mutex);
    looks[at].answer = std::move(answer);
    if (looks[at].overdue) --looks[at].link->overdue;
    --pending;
    answered.notify_all();
  }

  // Until all have answered, or for those that are slow until others have waited long enough.
  void Await(absl::Time deadline) {
    std::unique_lock lock(mutex);
    while (pending > 0 && absl::Now() < deadline) {
      answered.wait_for(lock, absl::ToChronoMilliseconds(deadline - absl::Now()) + std::chrono::milliseconds(1));
    }
    for (HostLook& look : looks) {
      if (look.answer) continue;
      look.overdue = true;
      ++look.link->overdue;
    }
  }

  std::map<size_t, AttemptWatch::Answer> AnswersFor(size_t target) {
    std::map<size_t, AttemptWatch::Answer> answers;
    const std::lock_guard lock(mutex);
    for (size_t id = 0; id < asked.size(); ++id) {
      if (asked[id].target == target) answers[asked[id].rank] = AnswerTo(id);
    }
    return answers;
  }

  AttemptWatch::Answer AnswerTo(size_t id) const {
    const HostLook& look = looks[asked[id].look];
    const std::string& node = look.link->host().node;
    AttemptWatch::Answer answer;
    if (!look.answer) {
      answer.silence = HostSilence{fmt::format("{} has not answered yet", node), false};
    } else if (const auto* silence = std::get_if<HostSilence>(&*look.answer)) {
      answer.silence = *silence;
    } else {
      const auto& reply = std::get<HostReply>(*look.answer);
      answer.facts = reply.facts;
      const auto code = reply.ranks.find(id);
      if (code != reply.ranks.end()) answer.code = code->second;
      if (reply.marks_whole) answer.marks = &reply.marks;
      // A program that was cut short says less than it was asked.
      if ((asked[id].runner && !answer.code) || (!asked[id].runner && answer.marks == nullptr) ||
          (!look.mirrors.empty() && !reply.copies_whole)) {
        answer.silence = HostSilence{fmt::format("{} answered only in part", node), false};
      }
    }
    return answer;
  }
};

std::vector<Observation> NodeBackend::Observe(const std::vector<AttemptTarget>& targets, absl::Time deadline) {
  const absl::Time began = absl::Now();
  std::vector<Observation> observations(targets.size(), Unknown{"no time was left to look at it"});
  if (began >= deadline) return observations;
  const auto round = std::make_shared<Round>();
  std::vector<std::shared_ptr<Entry>> entries(targets.size());
  std::vector<bool> judged(targets.size(), true);
  std::vector<CopiedAttempts::Sight> sights(targets.size());
  for (size_t i = 0; i < targets.size(); ++i) {
    judged[i] = absl::Now() < deadline;
    if (!judged[i]) continue;
    sights[i] = copied_->Before(targets[i]);
    if (sights[i].known) {
      observations[i] = *std::move(sights[i].known);
      judged[i] = false;
      continue;
    }
    entries[i] = EntryOf(targets[i]);
    const std::lock_guard lock(entries[i]->mutex);
    if (sights[i].copied) entries[i]->watch->ReadsCopies();
    absl::StatusOr<std::vector<AttemptWatch::Question>> questions = entries[i]->watch->Begin();
    judged[i] = questions.ok();
    if (!questions.ok()) {
      observations[i] = Unknown{std::string(Message(questions.status()))};
      continue;
    }
    for (AttemptWatch::Question& question : *questions) {
      const std::shared_ptr<HostLink> link = links_.Of(question.host);
      if (sights[i].mirror) {
        absl::StatusOr<MirrorQuestion> files = sights[i].mirror->Ask(question.rank);
        if (!files.ok()) {
          observations[i] = Unknown{std::string(Message(files.status()))};
          judged[i] = false;
          break;
        }
        round->AddMirror(i, question.rank, *std::move(files), sights[i].mirror, link);
      }
      round->Add(i, std::move(question), link);
    }
  }
  round->pending = round->looks.size();
  const absl::Time look_until = std::min(deadline, began + kLookLimit);
  for (size_t at = 0; at < round->looks.size(); ++at) {
    const std::shared_ptr<HostLink> link = round->looks[at].link;
    if (link->overdue > 0) {
      round->Take(at, HostSilence{fmt::format("{} has not answered yet", link->host().node), false});
      continue;
    }
    if (std::optional<std::string> why = link->WhyNot()) {
      round->Take(at, HostSilence{*std::move(why), false});
      continue;
    }
    // Files behind the processes: what ends in between has its record there by then.
    std::string text = LookProgram(binary_, round->looks[at].questions, round->looks[at].marks, options_.deployment) +
                       MirrorProgram(round->looks[at].mirrors);
    looks_.Start([round, at, link, text = std::move(text), look_until] {
      round->Take(at, link->Ask({.text = text, .body = {}}, look_until));
    });
  }
  round->Await(std::min(look_until, began + kLookPatience));
  for (size_t i = 0; i < targets.size(); ++i) {
    if (!judged[i] || absl::Now() >= deadline) continue;
    const std::lock_guard lock(entries[i]->mutex);
    std::map<size_t, AttemptWatch::Answer> answers = round->AnswersFor(i);
    round->TakeFiles(i, answers);
    observations[i] = entries[i]->watch->Judge(targets[i].nonce, answers);
    if (sights[i].copied) observations[i] = copied_->After(targets[i], sights[i], std::move(observations[i]));
  }
  return observations;
}

FenceResult NodeBackend::Fence(const AttemptTarget& target, absl::Time deadline) {
  if (std::optional<FenceResult> of_copied = copied_->Fence(target, deadline)) return *std::move(of_copied);
  return launch::FenceAttempt(target, options_.storage_root);
}

absl::Status NodeBackend::Stop(const AttemptTarget& target, StopLevel level, absl::Time deadline) {
  if (std::optional<absl::Status> of_copied = copied_->Stop(target, level, deadline)) return *std::move(of_copied);
  switch (level) {
    case StopLevel::kWarn: {
      // The file comes second: a job that leaves on seeing it has been signalled (docs/decisions/0004).
      TP_RETURN_IF_ERROR(Signal(target, level, deadline));
      const absl::Status announced = launch::AnnouncePause(target.attempt_dir);
      return absl::IsNotFound(announced) ? absl::OkStatus() : announced;
    }
    case StopLevel::kTerm:
      return Signal(target, level, deadline);
    case StopLevel::kKill: {
      // Closed first: a rank that claims from here on starts nothing.
      const absl::Status closed = launch::CloseFence(target.attempt_dir);
      if (absl::IsNotFound(closed)) return absl::OkStatus();  // never prepared
      TP_RETURN_IF_ERROR(closed);
      return Signal(target, level, deadline);
    }
  }
  return absl::OkStatus();
}

absl::Status NodeBackend::Signal(const AttemptTarget& target, StopLevel level, absl::Time deadline) {
  const std::shared_ptr<Entry> entry = EntryOf(target);
  const std::lock_guard lock(entry->mutex);
  TP_ASSIGN_OR_RETURN(const std::vector<AttemptWatch::Question> ranks, entry->watch->RanksToSignal());
  std::map<std::shared_ptr<HostLink>, std::vector<RankQuestion>> by_host;
  for (const AttemptWatch::Question& rank : ranks) by_host[links_.Of(rank.host)].push_back(*rank.runner);
  const std::vector<std::pair<std::shared_ptr<HostLink>, std::vector<RankQuestion>>> orders(by_host.begin(),
                                                                                            by_host.end());
  std::vector<HostAnswer> answers(orders.size());
  ReachFaultPoint(FaultPoint::kBeforeRankSignal);
  ForEachAtOnce(orders.size(), [&](size_t i) {
    answers[i] = orders[i].first->Ask({.text = SignalProgram(binary_, orders[i].second, level), .body = {}}, deadline);
  });
  ReachFaultPoint(FaultPoint::kAfterRankSignal);
  std::string problems;
  const auto add = [&problems](const std::string& problem) { problems += (problems.empty() ? "" : "; ") + problem; };
  for (size_t i = 0; i < orders.size(); ++i) {
    const auto* reply = std::get_if<HostReply>(&answers[i]);
    if (reply == nullptr) {
      add(std::get<HostSilence>(answers[i]).why);
      continue;
    }
    for (const RankQuestion& rank : orders[i].second) {
      const auto code = reply->ranks.find(rank.id);
      const bool told = code != reply->ranks.end() &&
                        (code->second == kSignalSent || code->second == kRunnerGone || code->second == kNotClaimed ||
                         (code->second == kOtherBoot && entry->watch->RanBeforeReboot(rank.id, reply->facts)));
      if (!told) add(fmt::format("{} cannot signal rank {}-{}", orders[i].first->host().node, rank.pool, rank.rank));
    }
  }
  return problems.empty() ? absl::OkStatus() : Unavailable("not every rank was told: {}", problems);
}

absl::Status NodeBackend::Remove(const AttemptTarget& target, absl::Time deadline) {
  {
    const std::lock_guard lock(mutex_);
    entries_.erase(target.key);
  }
  std::set<std::shared_ptr<HostLink>> with_cgroups;
  for (const RankHost& host : target.hosts) {
    if (host.declared_dead) continue;
    const std::shared_ptr<HostLink> link = links_.Of(host);
    if (!link->cgroup().empty()) with_cgroups.insert(link);
  }
  const std::vector<std::shared_ptr<HostLink>> links(with_cgroups.begin(), with_cgroups.end());
  std::vector<HostAnswer> answers(links.size());
  ForEachAtOnce(links.size(), [&](size_t i) {
    const std::string group = launch::CgroupOfAttempt(links[i]->cgroup(), target.key);
    answers[i] = links[i]->Ask({.text = RemoveCgroupProgram(group), .body = {}}, deadline);
  });
  for (size_t i = 0; i < links.size(); ++i) {
    const auto* reply = std::get_if<HostReply>(&answers[i]);
    if (reply == nullptr) return Unavailable("{}", std::get<HostSilence>(answers[i]).why);
    if (reply->words.starts_with("left")) {
      return Unavailable("a process is left in the cgroup of {} on {}", target.key, links[i]->host().node);
    }
  }
  return copied_->Remove(target, deadline);
}

absl::StatusOr<std::vector<InventoryItem>> NodeBackend::Inventory(absl::Time deadline) {
  std::vector<std::shared_ptr<HostLink>> links = Listed();
  if (links.empty()) links = links_.All();
  return TakeInventory(links, options_.deployment, options_.storage_root, deadline);
}

void NodeBackend::SetNodes(const std::vector<RankHost>& nodes) {
  const std::lock_guard lock(mutex_);
  hosts_ = nodes;
}

std::vector<std::shared_ptr<HostLink>> NodeBackend::Listed() const {
  std::vector<RankHost> hosts;
  {
    const std::lock_guard lock(mutex_);
    hosts = hosts_;
  }
  std::vector<std::shared_ptr<HostLink>> links;
  links.reserve(hosts.size());
  for (const RankHost& host : hosts) links.push_back(links_.Of(host));
  return links;
}

void NodeBackend::ProbeNodes(absl::Time deadline) {
  const std::vector<std::shared_ptr<HostLink>> links = Listed();
  ForEachAtOnce(links.size(), [&](size_t i) { links[i]->Probe(deadline); });
  for (const std::shared_ptr<HostLink>& link : links) copied_->SettleOn(link->host());
}

std::vector<NodeSight> NodeBackend::Nodes() const {
  std::vector<NodeSight> nodes;
  for (const std::shared_ptr<HostLink>& link : Listed()) nodes.push_back(link->Status());
  return nodes;
}

absl::StatusOr<std::vector<CardSight>> NodeBackend::LookAtCards(const std::vector<NodeCards>& nodes,
                                                                absl::Time deadline) {
  return card_looks_.Look(links_, nodes, deadline);
}

}  // namespace tp::node
