#include "tpd/daemon.h"

#include <unistd.h>

#include <algorithm>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include "absl/time/clock.h"
#include "auth/bootstrap.h"
#include "auth/digest.h"
#include "auth/identity.h"
#include "auth/secret_file.h"
#include "base/fault_point.h"
#include "base/human_bytes.h"
#include "base/status.h"
#include "core/card_check.h"
#include "core/ids.h"
#include "store/disk.h"
#include "store/each_run.h"
#include "tpd/client_file.h"
#include "tpd/data_dir.h"
#include "tpd/logging.h"
#include "tpd/run_storage.h"

namespace tp::tpd {
namespace {

constexpr int64_t kBallastBytes = int64_t{32} << 20;
// Below this much free space no new work is taken; running work goes on.
constexpr int64_t kFreeSpaceMark = int64_t{128} << 20;
constexpr absl::Duration kInventoryLimit = absl::Seconds(30);
constexpr size_t kNonceBytes = 16;
constexpr size_t kPageKeyBytes = 32;

// The state of the storage is not known: nothing may be decided any more. A restart reads what is there.
[[noreturn]] void DieOfCommit(const absl::Status& status) {
  spdlog::critical("a commit failed, tpd ends so that nothing is decided on doubtful state: {}", Message(status));
  StopLogging();
  _exit(1);
}

void LogEvent(const store::EventRow& event) {
  if (event.event == loop::kQuarantined) {
    spdlog::error("run {} step {} is in quarantine: {}", event.run, event.step + 1, event.note);
  } else if (event.from == event.to && event.attempt == 0) {
    spdlog::info("run {} step {}: {}", event.run, event.step + 1, event.event);
  } else if (event.from != event.to) {
    spdlog::info("run {} step {} attempt {}: {} -> {} ({}){}{}", event.run, event.step + 1, event.attempt,
                 core::Name(event.from), core::Name(event.to), event.event, event.note.empty() ? "" : ": ", event.note);
  }
}

void LogCollected(const absl::StatusOr<snapshot::Collected>& collected) {
  if (!collected.ok()) {
    spdlog::warn("snapshots could not be collected, the next round tries again: {}", Message(collected.status()));
  } else if (collected->snapshots > 0 || collected->blobs > 0) {
    spdlog::info("collected {} snapshot(s) and {} file(s) that no run needs, {}", collected->snapshots,
                 collected->blobs, HumanBytes(collected->bytes));
  }
}

// What the files say and this tpd does not do.
void Warn(const core::Registry& registry, const Backends& backends) {
  if (const auto missing = MissingBackends(registry, backends); !missing.empty()) {
    spdlog::warn("this tpd has no backend {}: steps that need it stay in QUEUED (BACKEND)", fmt::join(missing, ", "));
  }
}

void LogReload(const api::ReloadPlan& plan, const Backends& backends) {
  std::vector<std::string> changes;
  changes.reserve(plan.changes.size());
  for (const config::Change& change : plan.changes) changes.push_back(change.text());
  spdlog::info("configuration read again, registry version {}: {}", plan.candidate->version,
               changes.empty() ? "no change" : fmt::format("{}", fmt::join(changes, ", ")));
  if (!plan.restart_keys.empty()) {
    spdlog::warn("tpd.yaml: {} come into force with a restart", fmt::join(plan.restart_keys, ", "));
  }
  if (!plan.changes.empty()) Warn(*plan.candidate, backends);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Daemon>> Daemon::Start(DaemonOptions options) {
  std::unique_ptr<Daemon> daemon(new Daemon(std::move(options)));
  TP_RETURN_IF_ERROR(daemon->LoadConfiguration());
  TP_RETURN_IF_ERROR(daemon->OpenStores());
  TP_RETURN_IF_ERROR(daemon->OpenSnapshots());
  TP_RETURN_IF_ERROR(daemon->EnterBootstrapToken());
  daemon->CrossCheckCards();
  TP_RETURN_IF_ERROR(daemon->StartBackends());
  daemon->StartNotifier();
  TP_RETURN_IF_ERROR(daemon->StartLoop());
  TP_RETURN_IF_ERROR(daemon->StartServer());
  return daemon;
}

Daemon::~Daemon() {
  watcher_.reset();
  if (server_) {
    RemoveClientFile(options_.data_directory);
    server_->Stop();
  }
  if (driver_) driver_->Shutdown(absl::Now() + absl::Seconds(2));
  if (loop_thread_) loop_thread_->Stop();
  engine_watch_.reset();  // the loop asks it for looks
  // Last: a storage that hangs holds up nothing else; and the last commits may have woken them.
  storage_scan_.reset();
  checkpoint_scan_.reset();
}

absl::Status Daemon::LoadConfiguration() {
  TP_ASSIGN_OR_RETURN(configuration_, Configuration::Open(options_.config_directory));
  const std::string root = config().storage_root.empty() ? options_.data_directory + "/runs" : config().storage_root;
  TP_ASSIGN_OR_RETURN(storage_root_, PrepareDirectory(root));
  return absl::OkStatus();
}

absl::Status Daemon::OpenStores() {
  TP_ASSIGN_OR_RETURN(store_, store::OpenStore(store::StorePaths{.database_directory = options_.data_directory,
                                                                 .lock_directory = storage_root_}));
  ReachFaultPoint(FaultPoint::kStartLocked);
  if (const auto& restored = store_.restored) {
    spdlog::warn(
        "the database is older than {}/tpd.lock remembers: a backup was restored. Epoch {} begins, run numbers "
        "go on from {}",
        storage_root_, restored->epoch, restored->next_run);
    TP_RETURN_IF_ERROR(store_.store->BeginEpoch(restored->epoch, restored->next_run));
  }
  ReachFaultPoint(FaultPoint::kBeforeBallast);
  const absl::Status ballast = store::KeepBallast(options_.data_directory + "/ballast", kBallastBytes);
  ReachFaultPoint(FaultPoint::kAfterBallast);
  if (!ballast.ok()) spdlog::warn("no ballast against a full disk: {}", Message(ballast));
  return absl::OkStatus();
}

absl::Status Daemon::OpenSnapshots() {
  snapshot::Limits limits;
  limits.max_bytes = config().snapshots.max_bytes;
  limits.max_user_bytes = config().snapshots.max_user_bytes;
  if (options_.collect_after) limits.grace = *options_.collect_after;
  TP_ASSIGN_OR_RETURN(snapshots_, snapshot::Store::Open(storage_root_, limits, [] { return absl::Now(); }));
  snapshot::CollectorOptions options;
  if (options_.collect_after) options.interval = *options_.collect_after;
  options.needed = [this]() -> absl::StatusOr<absl::flat_hash_set<std::string>> {
    TP_ASSIGN_OR_RETURN(const std::vector<std::string> ids, store_.reader->NeededSnapshots());
    return absl::flat_hash_set<std::string>(ids.begin(), ids.end());
  };
  options.report = LogCollected;
  collector_ = std::make_unique<snapshot::Collector>(*snapshots_, std::move(options));
  return absl::OkStatus();
}

absl::Status Daemon::EnterBootstrapToken() {
  TP_ASSIGN_OR_RETURN(const std::string user, auth::CurrentUserName());
  TP_ASSIGN_OR_RETURN(const store::TokenRow row, auth::LoadOrCreateBootstrapToken(TokenFile(), user, absl::Now()));
  TP_ASSIGN_OR_RETURN(const auto known, store_.reader->FindToken(row.id));
  if (!known) {
    store::Txn txn;
    TP_ASSIGN_OR_RETURN(txn.meta, store_.reader->ReadMeta());
    txn.tokens.push_back(row);
    txn.audit.push_back({.at = absl::Now(),
                         .principal = user,
                         .method = "bootstrap",
                         .run = 0,
                         .detail = "token " + row.id,
                         .revision = txn.meta.revision});
    ReachFaultPoint(FaultPoint::kBeforeTokenCommit);
    TP_RETURN_IF_ERROR(store_.store->Commit(txn));
    ReachFaultPoint(FaultPoint::kAfterTokenCommit);
  }
  TP_ASSIGN_OR_RETURN(loaded_, store_.store->Load());
  ReachFaultPoint(FaultPoint::kStartLoaded);
  for (const store::StorageUseRow& use : loaded_.storage_use) measured_owners_.insert(use.owner);
  return absl::OkStatus();
}

absl::Status Daemon::StartBackends() {
  const std::shared_ptr<const core::Registry> registry = configuration_->registry();
  TP_ASSIGN_OR_RETURN(backends_, MakeBackends(config(), *registry,
                                              {.storage_root = storage_root_,
                                               .data_directory = options_.data_directory,
                                               .rank_binary = options_.rank_binary}));
  Warn(*registry, backends_);
  for (const auto& [name, backend] : backends_) backend->SetNodes(NodesOf(*registry, name));
  if (store_.restored) TP_RETURN_IF_ERROR(ReportStrangers());
  Backends lanes = backends_;
  lanes[loop::kStorageBackend] = std::make_shared<RunStorage>(storage_root_);
  driver::DriverCallbacks callbacks;
  callbacks.effect_answered = [this](int64_t outbox_id, loop::EffectResult result) {
    loop_thread_->Post(loop::EffectAnswered{.outbox_id = outbox_id, .result = std::move(result)});
  };
  callbacks.attempt_observed = [this](const std::string& key, Observation observation) {
    loop_thread_->Post(loop::AttemptObserved{.key = key, .observation = std::move(observation)});
  };
  callbacks.look_wanted = [this] {
    if (watch_started_.load()) engine_watch_->LookSoon();
  };
  driver_ = std::make_unique<driver::Driver>(lanes, std::move(callbacks), driver::DriverOptions());
  return absl::OkStatus();
}

// After a restored backup: what the engines hold is compared before anything is launched (DESIGN 5.10).
// Attempts that the database knows are followed as ever; the others are listed for the admin.
absl::Status Daemon::ReportStrangers() {
  std::set<std::string> known;
  for (const core::RunWithSteps& run : loaded_.runs) {
    for (const core::Step& step : run.steps) {
      if (step.attempt) known.insert(step.attempt->key);
    }
  }
  TP_ASSIGN_OR_RETURN(const std::vector<core::SeenObject> seen, TakeInventory());
  for (const core::SeenObject& object : seen) {
    if (known.contains(object.key)) continue;
    spdlog::warn("backend {} has {}, which the restored database does not know: tp admin reconcile lists it",
                 object.backend, object.key);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<core::SeenObject>> Daemon::TakeInventory() const {
  std::vector<core::SeenObject> seen;
  for (const auto& [name, backend] : backends_) {
    TP_ASSIGN_OR_RETURN(std::vector<InventoryItem> items, backend->Inventory(absl::Now() + kInventoryLimit));
    for (InventoryItem& item : items) seen.push_back({name, std::move(item.key), std::move(item.target)});
  }
  return seen;
}

// Before anything is placed: what live attempts hold must fit the registry and each other. They keep it in any
// case; `tp admin registry status` shows the same.
void Daemon::CrossCheckCards() const {
  core::CardCheck check(*configuration_->registry());
  int live = 0;
  for (const core::RunWithSteps& run : loaded_.runs) {
    for (const core::Step& step : run.steps) {
      if (!step.attempt) continue;
      check.Add(*step.attempt);
      ++live;
    }
  }
  for (const std::string& fault : check.faults()) spdlog::error("cards: {}", fault);
  if (live > 0 && check.faults().empty()) spdlog::info("the cards of {} live attempt(s) fit the registry", live);
}

core::LaunchLayout Daemon::Layout() const {
  return {.storage_root = storage_root_,
          .log_max_bytes = config().log_max_bytes,
          .heartbeat_ms = static_cast<int>(absl::ToInt64Milliseconds(config().heartbeat))};
}

loop::ThreadHooks Daemon::MakeHooks() {
  loop::ThreadHooks hooks;
  hooks.fatal = DieOfCommit;
  hooks.disk_full = [path = options_.data_directory + "/ballast"] {
    const auto released = store::ReleaseBallast(path);
    if (released.ok() && *released) spdlog::error("the disk is full: the ballast was given up, make room now");
  };
  return hooks;
}

// Jobs are followed without it too. What it would have told waits in the store for a start that can.
void Daemon::StartNotifier() {
  notify::NotifierOptions options;
  options.path = options_.data_directory + "/notify.db";
  options.deployment = config().deployment;
  options.now = absl::Now;
  options.seed = std::random_device{}();
  auto notifier = notify::Notifier::Start(std::move(options), *store_.reader);
  if (!notifier.ok()) {
    spdlog::error("nobody is notified of anything until tpd is started again: {}", Message(notifier.status()));
    return;
  }
  notifier_ = *std::move(notifier);
  configuration_->FollowEndpoints([this](const notify::Endpoints& endpoints) { notifier_->SetEndpoints(endpoints); });
}

absl::StatusOr<std::vector<notify::ReceiverStatus>> Daemon::Receivers() const {
  if (!notifier_) return Unavailable("notifications were not started: tpd's log says why");
  return notifier_->Status();
}

// A run's word becomes one that is told when a step ends or pauses.
void Daemon::WakeNotifier(const loop::CommitNotice& notice) const {
  const bool told = std::any_of(notice.events.begin(), notice.events.end(), [](const store::EventRow& event) {
    return event.from != event.to && (core::IsTerminal(event.to) || event.to == core::JobState::kPaused);
  });
  if (told && notifier_) notifier_->Wake();
}

absl::Status Daemon::StartLoop() {
  loop::Settings settings;
  settings.deployment = {.name = config().deployment, .epoch = loaded_.meta.epoch};
  settings.policy = config().policy;
  settings.layout = Layout();
  settings.accounting_zone = config().accounting_zone;
  loop_ = std::make_unique<loop::Loop>(std::move(settings), std::move(loaded_), configuration_->registry(), *driver_,
                                       [] { return auth::Hex(auth::RandomBytes(kNonceBytes)); });
  loop_thread_ = std::make_unique<loop::LoopThread>(*loop_, *store_.store, MakeHooks());
  StartCheckpointScan();
  loop_->SetListener([this](const loop::CommitNotice& notice) {
    bool paused = false;
    for (const store::EventRow& event : notice.events) {
      LogEvent(event);
      paused |= event.to == core::JobState::kPaused && event.from != core::JobState::kPaused;
    }
    if (paused) checkpoint_scan_->Wake();
    server_->OnCommit(notice);
    WakeNotifier(notice);
  });
  port_ = std::make_unique<Port>(*loop_thread_);
  return absl::OkStatus();
}

absl::Status Daemon::StartServer() {
  api::ServerOptions options;
  options.address = config().listen.host;
  options.port = config().listen.port;
  TP_ASSIGN_OR_RETURN(options.page_token_key,
                      auth::LoadOrCreateKey(options_.data_directory + "/page.key", kPageKeyBytes));
  TP_ASSIGN_OR_RETURN(const store::Meta meta, store_.reader->ReadMeta());
  options.revision = meta.revision;
  options.on_fault = [](std::string_view what) { spdlog::error("a call ended in a fault: {}", what); };
  options.facts.version = options_.version;
  options.facts.deployment = config().deployment;
  options.facts.epoch = meta.epoch;
  options.facts.layout = Layout();
  options.facts.policy = config().policy;
  api::ServerParts parts{.loop = *port_,
                         .reader = *store_.reader,
                         .snapshots = *snapshots_,
                         .configuration = *configuration_,
                         .registry = [this] { return configuration_->registry(); },
                         .now = [] { return absl::Now(); },
                         .inventory = [this] { return TakeInventory(); },
                         .may_take_work = [this]() -> absl::Status {
                           const auto free = store::FreeBytes(options_.data_directory);
                           if (!free.ok() || *free >= kFreeSpaceMark) return absl::OkStatus();
                           return Error(
                               absl::StatusCode::kResourceExhausted,
                               "the server's disk is almost full ({} MiB free): no new work until an admin makes room",
                               *free >> 20);
                         },
                         .receivers = [this] { return Receivers(); },
                         .node_sights = [this] { return NodeSights(); }};
  TP_ASSIGN_OR_RETURN(server_, api::Server::Start(std::move(options), std::move(parts)));
  loop_thread_->Start();
  ReachFaultPoint(FaultPoint::kStartDelivered);
  TP_RETURN_IF_ERROR(WriteClientFile(options_.data_directory, server_->address(), TokenFile()));
  server_->SetServing(true);
  ReachFaultPoint(FaultPoint::kStartServing);
  StartWatching();
  StartEngineWatch();
  return StartScanning();
}

std::vector<NodeSight> Daemon::NodeSights() const {
  std::vector<NodeSight> sights;
  for (const auto& [name, backend] : backends_) {
    std::vector<NodeSight> seen = backend->Nodes();
    std::move(seen.begin(), seen.end(), std::back_inserter(sights));
  }
  return sights;
}

void Daemon::StartEngineWatch() {
  EngineWatchOptions options;
  options.backends = backends_;
  options.docker_cards = config().docker_cards;
  options.registry = [this] { return configuration_->registry(); };
  options.found = [this](loop::CardsHeldElsewhere held) { loop_thread_->Post(std::move(held)); };
  options.cards = [this](loop::CardsSeen seen) { loop_thread_->Post(std::move(seen)); };
  engine_watch_ = std::make_unique<EngineWatch>(std::move(options));
  watch_started_.store(true);
}

void Daemon::StartCheckpointScan() {
  CheckpointScanOptions options;
  options.layout = Layout();
  options.now = absl::Now;
  options.runs = [this]() -> absl::StatusOr<std::vector<core::RunWithSteps>> {
    std::vector<core::RunWithSteps> runs;
    const store::RunFilter live{.words = {core::RunWord::kRunning, core::RunWord::kPaused}};
    TP_RETURN_IF_ERROR(store::EachRun(*store_.reader, live, [&](const core::RunWithSteps& run) {
      runs.push_back(run);
      return absl::OkStatus();
    }));
    return runs;
  };
  options.found = [this](loop::CheckpointsSeen seen) { loop_thread_->Post(std::move(seen)); };
  checkpoint_scan_ = std::make_unique<CheckpointScan>(std::move(options));
}

absl::Status Daemon::StartScanning() {
  StorageScanOptions options;
  options.now = absl::Now;
  options.owners = [this] { return store_.reader->Owners(); };
  options.snapshot_bytes = [this](const std::string& owner) -> absl::StatusOr<int64_t> {
    TP_ASSIGN_OR_RETURN(const std::vector<std::string> ids, store_.reader->SnapshotsOf(owner, absl::InfiniteFuture()));
    return snapshots_->BytesOf(ids);
  };
  options.found = [this](loop::StorageScanned scanned) { loop_thread_->Post(std::move(scanned)); };
  TP_ASSIGN_OR_RETURN(Directory root, OpenDirectory(storage_root_));
  storage_scan_ = std::make_unique<StorageScan>(std::move(root), std::move(measured_owners_), std::move(options));
  return absl::OkStatus();
}

// tpd serves without it too: SIGHUP and `tp admin reload` remain.
void Daemon::StartWatching() {
  if (options_.config_directory.empty()) return;
  auto watcher = ConfigWatcher::Start(options_.config_directory, [this] { Reload(); });
  if (!watcher.ok()) {
    spdlog::warn("{}", Message(watcher.status()));
    return;
  }
  watcher_ = *std::move(watcher);
  if (configuration_->Status().differs_on_disk) Reload();  // changed while tpd started
}

void Daemon::Reload() {
  const absl::Status status = configuration_->Reload([this](const api::ReloadPlan& plan) {
    LogReload(plan, backends_);
    if (!plan.changes.empty()) loop_thread_->Post(plan.candidate);
  });
  if (!status.ok()) spdlog::error("the configuration stays as it was: {}", Message(status));
}

void Daemon::CheckHealth() { server_->SetServing(loop_thread_->Stalled() < options_.not_serving_after); }

}  // namespace tp::tpd
