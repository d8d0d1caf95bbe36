#include "backends/docker/docker_backend.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <fstream>
#include <iterator>

#include <fmt/format.h>

#include "absl/time/clock.h"
#include "base/fault_point.h"
#include "base/file.h"
#include "base/sha256.h"
#include "base/status.h"
#include "launch/attempt_dir.h"
#include "launch/engine_call.h"
#include "launch/rank_plan.h"

namespace tp::docker {
namespace {

// An attempt that nobody asked about for this long is over; asked again, it is read anew.
constexpr absl::Duration kForgetAfter = absl::Minutes(10);
constexpr absl::Duration kForgetEvery = absl::Minutes(1);
constexpr absl::Duration kLaunchLimit = absl::Minutes(2);  // after a pull
constexpr absl::Duration kInspectLimit = absl::Seconds(5);
constexpr absl::Duration kRunnerPatience = absl::Seconds(10);  // before the engine itself kills
constexpr absl::Duration kPreflightLimit = absl::Seconds(10);
constexpr absl::Duration kAfterOutage = absl::Seconds(15);
constexpr absl::Duration kEventsPause = absl::Seconds(2);
constexpr absl::Duration kPullAgainAfter = absl::Seconds(5);
constexpr absl::Duration kEndPatience = absl::Milliseconds(500);  // of a container whose runner could not be told
constexpr absl::Duration kEndPoll = absl::Milliseconds(50);
constexpr absl::Duration kRemovePoll = absl::Milliseconds(50);
constexpr size_t kMaxOutages = 64;
constexpr mode_t kRunnerMode = 0755;

// Exit codes of tp-rank signal, docs/launch-contract.md.
constexpr int kSignalSent = 0;
constexpr int kRunnerGone = 3;
constexpr int kNotClaimed = 4;

bool IsOnThisMachine(const EngineAddress& engine) { return engine.host.starts_with("unix://"); }

std::string LabelOf(const char* label, const std::string& value) { return fmt::format("{}={}", label, value); }

std::vector<std::string> OfLaunch(const LaunchSpec& spec) {
  return {LabelOf(kKeyLabel, spec.key), LabelOf(kNonceLabel, spec.nonce)};
}

// Containers see the storage at tpd's path, so the runner is laid down there, named by its content.
absl::StatusOr<std::string> LayDownRunner(const std::string& binary, const std::string& storage_root) {
  std::ifstream file(binary, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  if (!file || bytes.empty()) return NotFound("the runner {} cannot be read: install it with tpd", binary);
  Sha256 hash;
  hash.Update(bytes);
  TP_ASSIGN_OR_RETURN(const Directory directory, MakeDirectoriesBeneath(storage_root, ".tp-rank", kRunnerMode));
  const std::string name = "tp-rank-" + hash.HexDigest().substr(0, 32);
  struct stat about {};
  std::string path = directory.At(name);
  const bool there = lstat(path.c_str(), &about) == 0 && S_ISREG(about.st_mode) && about.st_uid == geteuid() &&
                     static_cast<size_t>(about.st_size) == bytes.size();
  if (!there) TP_RETURN_IF_ERROR(ReplaceFile(directory, name, bytes, kRunnerMode, Sync::kDurable));
  return path;
}

// `-<pool>-<rank>` of a container's name taken away; empty: it has none.
std::string KeyOfName(const std::string& name) {
  const size_t rank = name.rfind('-');
  const size_t pool = rank == std::string::npos || rank == 0 ? rank : name.rfind('-', rank - 1);
  return pool == std::string::npos ? "" : name.substr(0, pool);
}

// Of this backend's making: the labels alone are also those of an image that was committed from such a container.
bool IsRank(const Container& container) {
  const auto rank = container.Rank();
  return rank && container.name == ContainerName(container.Label(kKeyLabel), rank->first, rank->second);
}

std::map<std::string, std::map<RankKey, Container>> ByAttempt(std::vector<Container> containers) {
  std::map<std::string, std::map<RankKey, Container>> attempts;
  for (Container& container : containers) {
    if (IsRank(container)) attempts[container.Label(kKeyLabel)].emplace(*container.Rank(), std::move(container));
  }
  return attempts;
}

}  // namespace

absl::StatusOr<std::unique_ptr<DockerBackend>> DockerBackend::Create(DockerOptions options) {
  TP_ASSIGN_OR_RETURN(std::unique_ptr<CurlTransport> transport, CurlTransport::Create(options.address));
  return CreateOver(std::move(options), std::move(transport));
}

absl::StatusOr<std::unique_ptr<DockerBackend>> DockerBackend::CreateOver(DockerOptions options,
                                                                         std::unique_ptr<EngineTransport> transport) {
  TP_ASSIGN_OR_RETURN(launch::StorageRoot storage, launch::StorageRoot::Open(options.storage_root));
  options.storage_root = storage.path();
  TP_ASSIGN_OR_RETURN(std::string runner, LayDownRunner(options.rank_binary, options.storage_root));
  return std::unique_ptr<DockerBackend>(
      new DockerBackend(std::move(options), std::move(storage), std::move(runner), std::move(transport)));
}

DockerBackend::DockerBackend(DockerOptions options, launch::StorageRoot storage, std::string rank_in_storage,
                             std::unique_ptr<EngineTransport> transport)
    : options_(std::move(options)),
      rank_in_storage_(std::move(rank_in_storage)),
      user_(fmt::format("{}:{}", geteuid(), getegid())),
      place_({.storage = std::move(storage), .reader = options_.reader, .since_boot = options_.since_boot}),
      gpus_(IsOnThisMachine(options_.address) ? options_.tool_path : ""),
      transport_(std::move(transport)),
      engine_(*transport_) {}

DockerBackend::~DockerBackend() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  stopping_changed_.notify_all();
  transport_->Cancel();
  // Nobody adds to them any more.
  for (Worker& worker : threads_) worker.thread.join();
}

void DockerBackend::StartThread(std::function<void()> work) {
  const std::lock_guard lock(mutex_);
  if (stopping_) return;
  std::erase_if(threads_, [](Worker& worker) {
    if (*worker.ended) worker.thread.join();
    return !worker.thread.joinable();
  });
  auto ended = std::make_shared<std::atomic<bool>>(false);
  threads_.push_back({ended, std::thread([work = std::move(work), ended] {
                        work();
                        *ended = true;
                      })});
}

Capabilities DockerBackend::capabilities() const {
  return {.several_pools = false, .max_nodes = 0, .unique_names = true, .allocates_cards = false};
}

absl::Status DockerBackend::Validate(const LaunchSpec& spec) const {
  TP_ASSIGN_OR_RETURN(const ExecutorConfig config, ParseExecutorConfig(spec.executor_config, options_.storage_root));
  return CheckForContainers(spec, config);
}

// As on an engine without a runtime for cards: which one there is shows at the launch.
std::string DockerBackend::Render(const LaunchSpec& spec) const {
  const auto config = ParseExecutorConfig(spec.executor_config, options_.storage_root);
  if (!config.ok()) return std::string(Message(config.status())) + "\n";
  return DescribeRequests(spec, *config,
                          {.deployment = options_.deployment,
                           .storage_root = options_.storage_root,
                           .rank_binary = rank_in_storage_,
                           .user = user_,
                           .devices = {},
                           .device_directory = options_.device_directory});
}

void DockerBackend::SetWake(std::function<void(const std::string& key)> wake) {
  {
    const std::lock_guard lock(mutex_);
    wake_ = std::move(wake);
  }
  StartThread([this] { FollowEvents(); });
}

// Hints only: whatever is missed is seen at the next interval.
void DockerBackend::FollowEvents() {
  for (;;) {
    engine_
        .FollowEvents(LabelOf(kDeploymentLabel, options_.deployment),
                      [this](const std::string& name) {
                        if (const std::string key = KeyOfName(name); !key.empty()) wake_(key);
                      })
        .IgnoreError();
    std::unique_lock lock(mutex_);
    if (stopping_changed_.wait_for(lock, absl::ToChronoMilliseconds(kEventsPause), [this] { return stopping_; }))
      return;
  }
}

std::shared_ptr<DockerBackend::Entry> DockerBackend::FindEntry(const std::string& key) {
  const absl::Duration now = options_.since_boot();
  const std::lock_guard lock(mutex_);
  if (now - dropped_at_ >= kForgetEvery) {
    dropped_at_ = now;
    std::erase_if(entries_, [now](const auto& item) {
      return item.second.use_count() == 1 && now - item.second->used_at > kForgetAfter;
    });
  }
  std::shared_ptr<Entry>& entry = entries_[key];
  if (!entry) entry = std::make_shared<Entry>();
  entry->used_at = now;
  return entry;
}

// Apart from the map's lock: storage that hangs under one attempt holds up no other.
std::shared_ptr<DockerBackend::Entry> DockerBackend::EntryOf(const AttemptTarget& target) {
  std::shared_ptr<Entry> entry = FindEntry(target.key);
  const std::lock_guard lock(entry->mutex);
  if (!entry->containers || !entry->containers->IsAbout(target)) {
    entry->containers = std::make_unique<TrackedContainers>(place_, target);
  }
  return entry;
}

void DockerBackend::NoteAnswer(bool answered, absl::Time now) {
  const std::lock_guard lock(mutex_);
  if (!answered) {
    away_ = true;
    return;
  }
  first_answer_ = std::min(first_answer_, now);
  if (away_) {
    outages_.emplace_back(last_answer_, now + kAfterOutage);
    if (outages_.size() > kMaxOutages) outages_.erase(outages_.begin());
  }
  away_ = false;
  last_answer_ = now;
}

bool DockerBackend::InOutage(absl::Time at) const {
  const std::lock_guard lock(mutex_);
  // What the engine did before this tpd came nobody has seen.
  if (away_ || at < first_answer_) return true;
  return std::any_of(outages_.begin(), outages_.end(),
                     [at](const auto& outage) { return outage.first <= at && at <= outage.second; });
}

namespace {

// Podman takes DeviceRequests and gives no cards.
CardsBy WayToCards(const EngineFacts& facts, const LaunchSpec& spec) {
  if (facts.podman) return CardsBy::kDeviceNodes;
  if (facts.nvidia_runtime) return CardsBy::kNvidiaRuntime;
  for (const RankLaunch& rank : spec.ranks) {
    for (const int card : rank.placement.cards) {
      if (!facts.cdi_cards.contains(card)) return CardsBy::kDeviceNodes;
    }
  }
  return CardsBy::kCdi;
}

}  // namespace

absl::StatusOr<Site> DockerBackend::SiteNow(const LaunchSpec& spec, absl::Time deadline) {
  // Each time: between two launches another engine may have come to this address, or this one to a runtime.
  TP_ASSIGN_OR_RETURN(const EngineFacts facts, engine_.Facts(deadline));
  Site site{.deployment = options_.deployment,
            .storage_root = options_.storage_root,
            .rank_binary = rank_in_storage_,
            .user = user_,
            .cards_by = WayToCards(facts, spec),
            .devices = {},
            .device_directory = options_.device_directory};
  for (const char* name : {"nvidiactl", "nvidia-uvm", "nvidia-uvm-tools"}) {
    struct stat about {};
    if (stat(fmt::format("{}/{}", site.device_directory, name).c_str(), &about) == 0) site.devices.emplace_back(name);
  }
  return site;
}

// --- Launch ------------------------------------------------------------------------------------------

LaunchResult DockerBackend::Launch(const LaunchSpec& spec, absl::Time deadline) {
  const auto config = ParseExecutorConfig(spec.executor_config, options_.storage_root);
  const absl::Status valid = config.ok() ? CheckForContainers(spec, *config) : config.status();
  if (!valid.ok()) return LaunchRejected{LaunchRejected::Kind::kEngine, std::string(Message(valid))};
  const absl::Status prepared = launch::PrepareAttempt(spec, options_.storage_root);
  if (!prepared.ok()) return launch::RefusalOf(prepared);
  const std::string unfit = launch::Preflight(gpus_, spec, std::min(deadline, absl::Now() + kPreflightLimit));
  if (!unfit.empty()) return LaunchRefused{unfit};
  const std::shared_ptr<Entry> entry = EntryOf(launch::TargetOf(spec));
  {
    const std::lock_guard lock(entry->mutex);
    const absl::StatusOr<Claim> claim = entry->containers->ReadClaim(spec.nonce);
    if (!claim.ok()) return LaunchRefused{std::string(Message(claim.status()))};
    if (*claim == Claim::kFenced) return LaunchRefused{fmt::format("{} was fenced before its launch", spec.key)};
  }
  const std::string& image = spec.image.empty() ? config->image : spec.image;
  const absl::StatusOr<bool> there = engine_.HasImage(image, deadline);
  if (!there.ok()) return LaunchRefused{std::string(Message(there.status()))};
  {
    const std::lock_guard lock(entry->mutex);
    entry->launch = {.under_way = true, .pulling = !*there, .words = "", .image_failure = std::nullopt};
    if (!*there) entry->launch.words = fmt::format("pulling image {}", image);
  }
  if (!*there) {
    StartThread([this, spec, config = *config, entry] { PullThenLaunch(spec, config, entry); });
    return LaunchAccepted{};
  }
  LaunchResult result = LaunchContainers(spec, *config, *entry, deadline);
  const std::lock_guard lock(entry->mutex);
  entry->launch.under_way = false;
  entry->launched_at = options_.since_boot();
  return result;
}

// What an engine or registry cannot do for now is tried again until the deadline.
absl::Status DockerBackend::PullUntil(const std::string& image, absl::Time deadline, Entry& entry) {
  const auto tell = [&entry, &image](const std::string& words) {
    const std::lock_guard lock(entry.mutex);
    entry.launch.words = fmt::format("pulling image {}: {}", image, words);
    return entry.called_off;
  };
  for (;;) {
    absl::Status pulled = engine_.Pull(image, deadline, tell);
    if (pulled.ok() || absl::IsUnknown(pulled)) return pulled;
    const std::string words(Message(pulled));
    if (absl::Now() + kPullAgainAfter > deadline) {
      // That the engine is away says nothing of the image.
      return absl::IsAborted(pulled) ? Error(absl::StatusCode::kUnknown, "{}", words) : pulled;
    }
    if (tell(words)) return pulled;
    std::unique_lock lock(mutex_);
    if (stopping_changed_.wait_for(lock, absl::ToChronoMilliseconds(kPullAgainAfter), [this] { return stopping_; })) {
      return pulled;
    }
  }
}

// Should tpd end meanwhile, nothing of the attempt exists: it is launched again.
void DockerBackend::PullThenLaunch(const LaunchSpec& spec, const ExecutorConfig& config,
                                   const std::shared_ptr<Entry>& entry) {
  const std::string image = spec.image.empty() ? config.image : spec.image;
  const absl::Status pulled = PullUntil(image, absl::Now() + config.image_pull_deadline, *entry);
  bool called_off = false;
  {
    const std::lock_guard lock(entry->mutex);
    entry->launch.pulling = false;
    const absl::StatusOr<Claim> claim = entry->containers->ReadClaim(spec.nonce);
    called_off = entry->called_off || (claim.ok() && *claim == Claim::kFenced);
    if (absl::IsUnknown(pulled)) {
      entry->launch.image_failure =
          fmt::format("image {} cannot be pulled: {}; correct its name, or ask an admin whether the engine may pull it",
                      image, Message(pulled));
    }
  }
  if (pulled.ok() && !called_off) LaunchContainers(spec, config, *entry, absl::Now() + kLaunchLimit);
  {
    const std::lock_guard lock(entry->mutex);
    entry->launch.under_way = false;
    entry->launched_at = options_.since_boot();
    entry->launch.words.clear();
  }
  std::function<void(const std::string& key)> wake;
  {
    const std::lock_guard lock(mutex_);
    wake = wake_;
  }
  if (wake) wake(spec.key);
}

// All ranks or none: first every container exists, then they start. Of two launches of one attempt the one goes on
// that has made the first container; the other touches nothing of it.
LaunchResult DockerBackend::LaunchContainers(const LaunchSpec& spec, const ExecutorConfig& config, Entry& entry,
                                             absl::Time deadline) {
  const absl::StatusOr<Site> site = SiteNow(spec, deadline);
  if (!site.ok()) return LaunchRefused{std::string(Message(site.status()))};
  std::vector<std::string> to_start;
  ReachFaultPoint(FaultPoint::kBeforeHandOver);
  if (std::optional<LaunchResult> problem = CreateAll(spec, config, *site, to_start, deadline)) {
    // Nothing of it has run.
    RemoveContainers(OfLaunch(spec), deadline).IgnoreError();
    if (const std::string network = JobNetwork(spec, config); !network.empty()) {
      engine_.RemoveNetwork(network, deadline).IgnoreError();
    }
    return *std::move(problem);
  }
  LaunchResult result = StartAll(spec, entry, to_start, deadline);
  ReachFaultPoint(FaultPoint::kAfterHandOver);
  return result;
}

std::optional<LaunchResult> DockerBackend::CreateAll(const LaunchSpec& spec, const ExecutorConfig& config,
                                                     const Site& site, std::vector<std::string>& to_start,
                                                     absl::Time deadline) {
  using Kind = EngineAnswer::Kind;
  if (const std::string network = JobNetwork(spec, config); !network.empty()) {
    const auto made = engine_.CreateNetwork(network, NetworkBody(spec, network, options_.deployment), deadline);
    if (!made.ok()) return LaunchRefused{std::string(Message(made.status()))};
    if (!made->done() && made->kind != Kind::kConflict) {
      return LaunchRefused{fmt::format("the job's network cannot be made: {}", made->words)};
    }
  }
  for (const RankLaunch& rank : spec.ranks) {
    const std::string name = ContainerName(spec.key, rank.pool, rank.rank);
    const auto made = engine_.Create(name, CreateBody(spec, rank, config, site), deadline);
    // A container that exists and was not started runs nothing: the lost answer of a create is one that did not come.
    if (!made.ok()) return LaunchRefused{std::string(Message(made.status()))};
    if (made->kind == Kind::kConflict) {
      const auto found = engine_.Inspect(name, deadline);
      if (!found.ok()) return LaunchRefused{std::string(Message(found.status()))};
      const bool same = *found && (*found)->container.Label(kKeyLabel) == spec.key &&
                        (*found)->container.Label(kNonceLabel) == spec.nonce;
      if (!same) return LaunchRefused{fmt::format("a container {} of another launch is there already", name)};
      if ((*found)->container.state != ContainerState::kCreated || (*found)->started_once) continue;
    } else if (made->kind == Kind::kRefused && made->status < 500) {
      return LaunchRejected{LaunchRejected::Kind::kEngine, fmt::format("container {}: {}", name, made->words)};
    } else if (!made->done()) {
      return LaunchRefused{fmt::format("container {}: {}", name, made->words)};
    }
    to_start.push_back(name);
  }
  return std::nullopt;
}

LaunchResult DockerBackend::StartAll(const LaunchSpec& spec, Entry& entry, const std::vector<std::string>& to_start,
                                     absl::Time deadline) {
  for (const std::string& name : to_start) {
    {
      const std::lock_guard lock(entry.mutex);
      if (entry.called_off) {
        return CallOff(spec, LaunchRefused{"it was called off while it was launched"}, deadline);
      }
    }
    const auto started = engine_.Start(name, deadline);
    if (!started.ok()) return LaunchIndeterminate{std::string(Message(started.status()))};
    if (started->done()) continue;
    const std::string words = fmt::format("container {} cannot start: {}", name, started->words);
    const bool for_good = started->kind == EngineAnswer::Kind::kRefused && started->status < 500;
    return CallOff(spec,
                   for_good ? LaunchResult(LaunchRejected{LaunchRejected::Kind::kEngine, words})
                            : LaunchResult(LaunchRefused{words}),
                   deadline);
  }
  return LaunchAccepted{};
}

// Some may run and others never will. Where no rank has claimed yet, none will begin its job.
LaunchResult DockerBackend::CallOff(const LaunchSpec& spec, LaunchResult result, absl::Time deadline) {
  if (std::holds_alternative<FenceWon>(launch::FenceAttempt(launch::TargetOf(spec), options_.storage_root))) {
    RemoveContainers(OfLaunch(spec), deadline).IgnoreError();
    return result;
  }
  launch::CloseFence(spec.paths.attempt_dir).IgnoreError();
  for (const RankLaunch& rank : spec.ranks) {
    engine_.Kill(ContainerName(spec.key, rank.pool, rank.rank), "SIGKILL", deadline).IgnoreError();
  }
  return LaunchIndeterminate{"not every container could start, so the others were ended"};
}

// --- Observe -----------------------------------------------------------------------------------------

std::vector<Observation> DockerBackend::Observe(const std::vector<AttemptTarget>& targets, absl::Time deadline) {
  const absl::Duration began = options_.since_boot();
  auto listed = engine_.List({LabelOf(kDeploymentLabel, options_.deployment)}, false, deadline);
  NoteAnswer(listed.ok(), absl::Now());
  std::vector<Observation> observations;
  observations.reserve(targets.size());
  if (!listed.ok()) {
    observations.assign(targets.size(), Unknown{std::string(Message(listed.status()))});
    return observations;
  }
  const auto attempts = ByAttempt(*std::move(listed));
  const std::map<RankKey, Container> none;
  const auto inspect = [&](const std::string& id) -> std::optional<Inspected> {
    auto inspected = engine_.Inspect(id, std::min(deadline, absl::Now() + kInspectLimit));
    return inspected.ok() ? *std::move(inspected) : std::nullopt;
  };
  const auto in_outage = [this](absl::Time at) { return InOutage(at); };
  for (const AttemptTarget& target : targets) {
    if (absl::Now() >= deadline) {
      observations.emplace_back(Unknown{"no time was left to look at it"});
      continue;
    }
    const std::shared_ptr<Entry> entry = EntryOf(target);
    const auto seen = attempts.find(target.key);
    const std::lock_guard lock(entry->mutex);
    LaunchProgress launch = entry->launch;
    launch.under_way = launch.under_way || entry->launched_at >= began;
    observations.push_back(entry->containers->Observe(target.nonce, seen == attempts.end() ? none : seen->second,
                                                      launch, inspect, in_outage));
  }
  return observations;
}

// --- Orders ------------------------------------------------------------------------------------------

FenceResult DockerBackend::Fence(const AttemptTarget& target, absl::Time) {
  return launch::FenceAttempt(target, options_.storage_root);
}

absl::Status DockerBackend::Stop(const AttemptTarget& target, StopLevel level, absl::Time deadline) {
  const std::shared_ptr<Entry> entry = EntryOf(target);
  switch (level) {
    case StopLevel::kWarn: {
      // The file comes second: a job that leaves on seeing it has been signalled (docs/decisions/0004).
      TP_RETURN_IF_ERROR(SignalRanks(target, *entry, level, deadline));
      const absl::Status announced = launch::AnnouncePause(target.attempt_dir);
      return absl::IsNotFound(announced) ? absl::OkStatus() : announced;
    }
    case StopLevel::kTerm:
      return SignalRanks(target, *entry, level, deadline);
    case StopLevel::kKill: {
      {
        const std::lock_guard lock(entry->mutex);
        entry->called_off = true;
        if (!entry->killed_at) entry->killed_at = options_.since_boot();
      }
      // Closed first: a rank that claims from here on starts nothing.
      const absl::Status closed = launch::CloseFence(target.attempt_dir);
      if (absl::IsNotFound(closed)) return absl::OkStatus();  // never prepared
      TP_RETURN_IF_ERROR(closed);
      return SignalRanks(target, *entry, level, deadline);
    }
  }
  return absl::OkStatus();
}

absl::Status DockerBackend::SignalRanks(const AttemptTarget& target, Entry& entry, StopLevel level,
                                        absl::Time deadline) {
  std::vector<RankKey> ranks;
  bool by_engine = false;
  {
    const std::lock_guard lock(entry.mutex);
    TP_ASSIGN_OR_RETURN(ranks, entry.containers->RanksToSignal());
    by_engine =
        level == StopLevel::kKill && entry.killed_at && options_.since_boot() - *entry.killed_at > kRunnerPatience;
  }
  if (by_engine) return KillContainers(target.key, deadline);
  absl::Status first;
  for (const auto& [pool, rank] : ranks) {
    const std::string name = ContainerName(target.key, pool, rank);
    ReachFaultPoint(FaultPoint::kBeforeRankSignal);
    first.Update(SignalInside(name,
                              {rank_in_storage_, "signal", target.attempt_dir, std::to_string(pool),
                               std::to_string(rank), launch::SignalWord(level)},
                              deadline));
    ReachFaultPoint(FaultPoint::kAfterRankSignal);
  }
  return first;
}

// Of runners that do not see to it, whatever they hang in: the end of its first process is that of a container.
absl::Status DockerBackend::KillContainers(const std::string& key, absl::Time deadline) {
  TP_ASSIGN_OR_RETURN(const std::vector<Container> left, engine_.List({LabelOf(kKeyLabel, key)}, false, deadline));
  absl::Status first;
  for (const Container& container : left) {
    if (container.state == ContainerState::kActive && IsRank(container)) {
      first.Update(engine_.Kill(container.id, "SIGKILL", deadline).status());
    }
  }
  return first;
}

// Whoever brings the order is of the container, and may end with what it ends.
absl::Status DockerBackend::SignalInside(const std::string& name, const std::vector<std::string>& argv,
                                         absl::Time deadline) {
  const auto code = engine_.Execute(name, argv, deadline);
  const bool told = code.ok() && (!*code || **code == kSignalSent || **code == kRunnerGone || **code == kNotClaimed);
  if (told) return absl::OkStatus();
  TP_ASSIGN_OR_RETURN(const bool over, IsSoonOver(name, deadline));
  if (over) return absl::OkStatus();
  if (!code.ok()) return code.status();
  return Unavailable("container {} cannot be told: tp-rank signal ended with {} in it", name, **code);
}

// An engine may learn of an end a little later than what runs its containers.
absl::StatusOr<bool> DockerBackend::IsSoonOver(const std::string& name, absl::Time deadline) {
  const absl::Time until = std::min(deadline, absl::Now() + kEndPatience);
  for (;;) {
    TP_ASSIGN_OR_RETURN(const std::optional<Inspected> left, engine_.Inspect(name, deadline));
    if (!left || left->container.state != ContainerState::kActive) return true;
    if (absl::Now() + kEndPoll > until) return false;
    std::this_thread::sleep_for(absl::ToChronoMilliseconds(kEndPoll));
  }
}

absl::Status DockerBackend::Remove(const AttemptTarget& target, absl::Time deadline) {
  std::shared_ptr<Entry> entry;
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = entries_.find(target.key); found != entries_.end()) {
      entry = std::move(found->second);
      entries_.erase(found);
    }
  }
  if (entry) {
    const std::lock_guard lock(entry->mutex);
    entry->called_off = true;  // for a pull that is under way
  }
  TP_RETURN_IF_ERROR(RemoveContainers({LabelOf(kKeyLabel, target.key)}, deadline));
  return RemoveNetworks(target.key, deadline);
}

absl::Status DockerBackend::RemoveNetworks(const std::string& key, absl::Time deadline) {
  TP_ASSIGN_OR_RETURN(const std::vector<std::string> networks, engine_.ListNetworks(LabelOf(kKeyLabel, key), deadline));
  for (const std::string& id : networks) {
    TP_ASSIGN_OR_RETURN(const EngineAnswer removed, engine_.RemoveNetwork(id, deadline));
    if (!removed.done() && removed.kind != EngineAnswer::Kind::kMissing) {
      return Unavailable("a network of {} cannot be removed: {}", key, removed.words);
    }
  }
  return absl::OkStatus();
}

// Being removed already is on its way to being gone.
absl::Status DockerBackend::RemoveContainers(const std::vector<std::string>& labels, absl::Time deadline) {
  for (bool again = false;; again = true) {
    TP_ASSIGN_OR_RETURN(std::vector<Container> left, engine_.List(labels, false, deadline));
    std::erase_if(left, [](const Container& container) { return !IsRank(container); });
    if (left.empty()) return absl::OkStatus();
    if (absl::Now() + kRemovePoll > deadline) return Unavailable("container {} is still being removed", left[0].name);
    if (again) std::this_thread::sleep_for(absl::ToChronoMilliseconds(kRemovePoll));
    for (const Container& container : left) {
      TP_ASSIGN_OR_RETURN(const EngineAnswer removed, engine_.Remove(container.id, deadline));
      if (removed.kind == EngineAnswer::Kind::kRefused) {
        return Unavailable("container {} cannot be removed: {}", container.name, removed.words);
      }
    }
  }
}

absl::StatusOr<std::vector<InventoryItem>> DockerBackend::Inventory(absl::Time deadline) {
  TP_ASSIGN_OR_RETURN(std::vector<Container> containers,
                      engine_.List({LabelOf(kDeploymentLabel, options_.deployment)}, false, deadline));
  std::vector<InventoryItem> items;
  for (const auto& [key, ranks] : ByAttempt(std::move(containers))) {
    InventoryItem item{.key = key, .holds_cards = false, .target = std::nullopt};
    AttemptTarget target{.key = key, .nonce = "", .attempt_dir = "", .ranks_per_pool = {}};
    bool left = false;
    for (const auto& [rank, container] : ranks) {
      left = left || container.state != ContainerState::kExited;
      item.holds_cards = item.holds_cards || container.state == ContainerState::kActive;
      target.nonce = container.Label(kNonceLabel);
      target.attempt_dir = container.Label(kDirectoryLabel);
      target.ranks_per_pool.resize(std::max(target.ranks_per_pool.size(), static_cast<size_t>(rank.first) + 1));
      target.ranks_per_pool[static_cast<size_t>(rank.first)] =
          std::max(target.ranks_per_pool[static_cast<size_t>(rank.first)], rank.second + 1);
    }
    item.target = std::move(target);
    if (left) items.push_back(std::move(item));
  }
  return items;
}

absl::StatusOr<std::vector<ForeignCard>> DockerBackend::ForeignCards(absl::Time deadline) {
  constexpr int kKnownCards = 64;  // more than any machine has; the registry leaves out what there is not
  TP_ASSIGN_OR_RETURN(const std::vector<Container> running, engine_.List({}, true, deadline));
  std::vector<ForeignCard> held;
  for (const Container& container : running) {
    if (container.Label(kDeploymentLabel) == options_.deployment && IsRank(container)) continue;
    TP_ASSIGN_OR_RETURN(const std::string text, engine_.InspectText(container.id, deadline));
    const std::vector<ForeignCard> cards = CardsHeldBy(text, kKnownCards);
    held.insert(held.end(), cards.begin(), cards.end());
  }
  return held;
}

absl::StatusOr<std::vector<CardSight>> DockerBackend::LookAtCards(const std::vector<NodeCards>& nodes,
                                                                  absl::Time deadline) {
  return launch::SightsOf(gpus_, nodes, deadline);
}

}  // namespace tp::docker
