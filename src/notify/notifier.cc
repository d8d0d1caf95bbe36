#include "notify/notifier.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <map>
#include <utility>

#include <spdlog/spdlog.h>

#include "base/file.h"
#include "base/overloaded.h"
#include "base/status.h"

namespace tp::notify {
namespace {

constexpr int kChangesAtOnce = 200;
constexpr int64_t kUnkeptRevisions = 10'000;  // followed without a message, before the outbox learns of it
constexpr absl::Duration kLookAnyway = absl::Minutes(1);
constexpr absl::Duration kAfterFault = absl::Seconds(5);

void Signal(const UniqueFd& event) { eventfd_write(event.get(), 1); }

absl::StatusOr<UniqueFd> MakeEvent() {
  UniqueFd event(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!event.valid()) return ErrnoStatus(errno, "make", "an eventfd");
  return event;
}

Feeds FeedsOf(const Endpoints& endpoints) {
  Feeds feeds;
  for (const auto& [name, endpoint] : endpoints) feeds[name] = endpoint.on;
  return feeds;
}

std::string WhatAbout(const Pending& pending) {
  return fmt::format("{} of run {} to {}", pending.notification.id, pending.notification.run,
                     pending.notification.receiver);
}

}  // namespace

struct Notifier::Worker {
  std::string receiver;
  Endpoint endpoint;
  std::unique_ptr<Channel> channel;
  UniqueFd stop;
  bool stopping = false;  // guarded by Notifier::mutex_
  bool failing = false;   // the worker's own
  std::thread thread;
};

absl::StatusOr<std::unique_ptr<Notifier>> Notifier::Start(NotifierOptions options, store::Reader& reader) {
  TP_ASSIGN_OR_RETURN(const int64_t present, reader.Revision());
  TP_ASSIGN_OR_RETURN(std::unique_ptr<Outbox> outbox, Outbox::Open(options.path, present));
  TP_ASSIGN_OR_RETURN(UniqueFd wake, MakeEvent());
  TP_ASSIGN_OR_RETURN(UniqueFd stop, MakeEvent());
  return std::unique_ptr<Notifier>(
      new Notifier(std::move(options), reader, std::move(outbox), std::move(wake), std::move(stop)));
}

Notifier::Notifier(NotifierOptions options, store::Reader& reader, std::unique_ptr<Outbox> outbox, UniqueFd wake,
                   UniqueFd stop)
    : options_(std::move(options)),
      reader_(reader),
      wake_(std::move(wake)),
      stop_(std::move(stop)),
      followed_(outbox->followed()),
      strays_looked_(absl::InfinitePast()),
      outbox_(std::move(outbox)),
      random_(options_.seed) {}

Notifier::~Notifier() {
  Signal(stop_);
  if (follower_.joinable()) follower_.join();
  const std::lock_guard one_at_a_time(endpoints_mutex_);
  End(std::exchange(workers_, {}));
  const std::lock_guard lock(mutex_);
  if (followed_ > outbox_->followed()) LogOnce(outbox_->Append({}, followed_, options_.now()));
}

// --- Following ------------------------------------------------------------------------------------

void Notifier::Wake() const { Signal(wake_); }

void Notifier::Follow() {
  while (!stopping()) {
    eventfd_t seen = 0;
    eventfd_read(wake_.get(), &seen);  // before looking: what is woken from now on is looked for again
    const absl::StatusOr<bool> more = FollowSome();
    if (!more.ok()) {
      const std::lock_guard lock(mutex_);
      LogOnce(more.status());
    }
    if (!more.ok()) {
      Pause(kAfterFault);
    } else if (!*more) {
      GiveUpStrays();
      Pause(kLookAnyway);
    }
  }
}

// True while there may be more.
absl::StatusOr<bool> Notifier::FollowSome() {
  TP_ASSIGN_OR_RETURN(const std::vector<store::WordChange> changes,
                      reader_.WordChangesAfter(followed_, kChangesAtOnce));
  if (changes.empty()) return false;
  const std::lock_guard lock(mutex_);
  const Feeds feeds = FeedsOf(endpoints_);
  const Sender sender{.deployment = options_.deployment, .instance = outbox_->instance()};
  std::vector<Notification> notifications;
  for (const store::WordChange& change : changes) {
    for (Notification& added : NotificationsOf(change, feeds, sender)) notifications.push_back(std::move(added));
  }
  const int64_t followed = changes.back().row.revision;
  if (!notifications.empty() || followed - outbox_->followed() > kUnkeptRevisions) {
    TP_RETURN_IF_ERROR(outbox_->Append(notifications, followed, options_.now()));
  }
  followed_ = followed;
  if (!notifications.empty()) changed_.notify_all();
  return true;
}

// What waits for a receiver that tpd.yaml has no more.
void Notifier::GiveUpStrays() {
  const absl::Time now = options_.now();
  if (now - strays_looked_ < kLookAnyway) return;
  strays_looked_ = now;
  const std::lock_guard lock(mutex_);
  const auto old = outbox_->OlderThan(now - kPatience);
  LogOnce(old.status());
  if (!old.ok()) return;
  for (const Pending& pending : *old) {
    if (endpoints_.contains(pending.notification.receiver)) continue;
    spdlog::warn("notification {} is given up: there is no such receiver", WhatAbout(pending));
    LogOnce(outbox_->Record(pending, GivenUp{}, {.why = "there is no such receiver"}, now));
  }
}

// Until it is woken, or is to end.
void Notifier::Pause(absl::Duration time) const {
  std::array<pollfd, 2> events = {
      {{.fd = wake_.get(), .events = POLLIN, .revents = 0}, {.fd = stop_.get(), .events = POLLIN, .revents = 0}}};
  poll(events.data(), events.size(), static_cast<int>(absl::ToInt64Milliseconds(time)));
}

bool Notifier::stopping() const {
  pollfd event = {.fd = stop_.get(), .events = POLLIN, .revents = 0};
  return poll(&event, 1, 0) > 0;
}

// --- Receivers ------------------------------------------------------------------------------------

void Notifier::SetEndpoints(const Endpoints& endpoints) {
  const std::lock_guard one_at_a_time(endpoints_mutex_);
  {
    const std::lock_guard lock(mutex_);
    endpoints_ = endpoints;
  }
  const auto stays = [&endpoints](const std::unique_ptr<Worker>& worker) {
    const auto found = endpoints.find(worker->receiver);
    return found != endpoints.end() && found->second == worker->endpoint;
  };
  const auto first_to_end = std::stable_partition(workers_.begin(), workers_.end(), stays);
  std::vector<std::unique_ptr<Worker>> to_end(std::make_move_iterator(first_to_end),
                                              std::make_move_iterator(workers_.end()));
  workers_.erase(first_to_end, workers_.end());
  End(to_end);
  StartMissingWorkers();
  if (!follower_.joinable()) follower_ = std::thread([this] { Follow(); });
}

void Notifier::StartMissingWorkers() {
  for (const auto& [name, endpoint] : endpoints_) {
    const bool there = std::any_of(workers_.begin(), workers_.end(),
                                   [&name = name](const auto& worker) { return worker->receiver == name; });
    for (int i = 0; !there && i < endpoint.most_at_once; ++i) {
      absl::StatusOr<UniqueFd> stop = MakeEvent();
      if (!stop.ok()) {
        const std::lock_guard lock(mutex_);
        return LogOnce(stop.status());
      }
      Worker& worker = *workers_.emplace_back(std::make_unique<Worker>());
      worker.receiver = name;
      worker.endpoint = endpoint;
      worker.channel = options_.make_channel(endpoint);
      worker.stop = *std::move(stop);
      worker.thread = std::thread([this, &worker] { Work(worker); });
    }
  }
}

void Notifier::End(const std::vector<std::unique_ptr<Worker>>& workers) {
  {
    const std::lock_guard lock(mutex_);
    for (const auto& worker : workers) {
      worker->stopping = true;
      Signal(worker->stop);
    }
  }
  changed_.notify_all();
  for (const auto& worker : workers) worker->thread.join();
}

absl::StatusOr<std::vector<ReceiverStatus>> Notifier::Status() {
  const std::lock_guard lock(mutex_);
  TP_ASSIGN_OR_RETURN(const std::vector<ReceiverStatus> tallies, outbox_->Tallies());
  std::map<std::string, ReceiverStatus> by_name;
  for (const ReceiverStatus& tally : tallies) by_name[tally.name] = tally;
  for (const auto& [name, endpoint] : endpoints_) {
    by_name[name].name = name;
    by_name[name].configured = true;
  }
  std::vector<ReceiverStatus> all;
  all.reserve(by_name.size());
  for (auto& [name, status] : by_name) all.push_back(std::move(status));
  return all;
}

// --- Sending --------------------------------------------------------------------------------------

void Notifier::Work(Worker& worker) {
  while (const std::optional<Pending> pending = Take(worker)) {
    Finish(worker, *pending, worker.channel->Send(pending->notification, worker.stop.get()));
  }
}

// What is due, claimed; nothing when the worker is to end.
std::optional<Pending> Notifier::Take(Worker& worker) {
  std::unique_lock lock(mutex_);
  while (!worker.stopping) {
    absl::Duration wait = kLookAnyway;
    if (const auto next = FirstUnclaimed(worker.receiver)) {
      const absl::Time now = options_.now();
      if (IsDue(next->next_try_at, now)) {
        claimed_.insert(next->seq);
        return next;
      }
      wait = std::min(wait, next->next_try_at - now);
    }
    changed_.wait_for(lock, absl::ToChronoMicroseconds(wait));
  }
  return std::nullopt;
}

std::optional<Pending> Notifier::FirstUnclaimed(const std::string& receiver) {
  const auto next = outbox_->Next(receiver, claimed_.size() + 1);
  LogOnce(next.status());
  if (!next.ok()) return std::nullopt;
  const auto found =
      std::find_if(next->begin(), next->end(), [this](const Pending& row) { return !claimed_.contains(row.seq); });
  return found == next->end() ? std::nullopt : std::optional(*found);
}

// What cannot be recorded stays claimed until it can: the receiver would get it again and again.
void Notifier::Finish(Worker& worker, const Pending& pending, const TryResult& result) {
  std::unique_lock lock(mutex_);
  const absl::Time now = options_.now();
  const Verdict verdict = AfterTry(result, pending.tries + 1, pending.created_at, now, random_.Next());
  if (result.outcome != TryOutcome::kCancelled) {
    Report(worker, pending, verdict, result);
    for (;;) {
      const absl::Status recorded = outbox_->Record(pending, verdict, result, now);
      LogOnce(recorded);
      if (recorded.ok() || worker.stopping) break;
      changed_.wait_for(lock, absl::ToChronoMilliseconds(kAfterFault));
    }
  }
  claimed_.erase(pending.seq);
  changed_.notify_all();  // the next one of its run may be due
}

// The first failure, and that it is over; what is given up, each time.
void Notifier::Report(Worker& worker, const Pending& pending, const Verdict& verdict, const TryResult& result) const {
  std::visit(Overloaded{[&](const Delivered&) {
                          if (worker.failing) spdlog::info("receiver {} takes messages again", worker.receiver);
                          worker.failing = false;
                        },
                        [&](const TryAgain&) {
                          if (!worker.failing) {
                            spdlog::warn("notification {} failed and is tried again: {}", WhatAbout(pending),
                                         result.why);
                          }
                          worker.failing = true;
                        },
                        [&](const GivenUp&) {
                          spdlog::warn("notification {} is given up after {} tries: {}", WhatAbout(pending),
                                       pending.tries + 1, result.why);
                        }},
             verdict);
}

// Once, not at every try.
void Notifier::LogOnce(const absl::Status& status) {
  std::string fault(Message(status));
  if (fault == last_fault_) return;
  last_fault_ = std::move(fault);
  if (!status.ok()) spdlog::error("notifications: {}", last_fault_);
}

}  // namespace tp::notify
