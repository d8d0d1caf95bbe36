#include "api/queue_cache.h"

#include <set>
#include <utility>

#include "api/context.h"
#include "base/status.h"

namespace tp::api {
namespace {

// Without a commit.
constexpr absl::Duration kQueueServes = absl::Seconds(10);
// All of it is read again so often, whatever the events say.
constexpr absl::Duration kRenewed = absl::Hours(1);
// More events than this cost as much as reading everything.
constexpr int kMostEvents = 2000;

}  // namespace

absl::Status QueueCache::Fill(Context& context, const core::Shares& shares, QueueInOrder& to) const {
  const core::Policy& policy = context.facts.policy;
  if (latest_ && latest_->registry == to.registry && to.at - latest_->read_at < kRenewed) {
    TP_ASSIGN_OR_RETURN(const auto events, context.reader.EventsAfter(latest_->revision, kMostEvents));
    if (events.size() < kMostEvents) {
      std::set<int64_t> changed;
      for (const store::EventRow& event : events) changed.insert(event.run);
      to.read_at = latest_->read_at;
      TP_ASSIGN_OR_RETURN(to.steps,
                          RenewQueue(latest_->steps, changed, context.reader, *to.registry, policy, shares, to.at));
      return absl::OkStatus();
    }
  }
  to.read_at = to.at;
  TP_ASSIGN_OR_RETURN(to.steps, ReadQueue(context.reader, *to.registry, policy, shares, to.at));
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const QueueInOrder>> QueueCache::Read(Context& context, const core::Shares& shares) {
  const std::lock_guard lock(mutex_);  // who comes meanwhile gets the same
  auto read = std::make_shared<QueueInOrder>();
  TP_ASSIGN_OR_RETURN(read->revision, context.reader.Revision());
  read->at = context.now();
  read->registry = context.registry();
  if (latest_ && latest_->revision == read->revision && latest_->registry == read->registry &&
      read->at - latest_->at < kQueueServes) {
    return latest_;
  }
  TP_RETURN_IF_ERROR(Fill(context, shares, *read));
  latest_ = std::move(read);
  return latest_;
}

void WithShares(Context& context, std::function<void(const absl::Status&)> failed,
                std::function<void(const core::Shares&)> then) {
  if (!context.facts.policy.fair_share) return then({});
  context.loop.Post(loop::StandingQuery(), [&context, failed = std::move(failed),
                                            then = std::move(then)](absl::StatusOr<loop::Standings> standings) {
    if (!standings.ok()) return failed(standings.status());
    context.calls.Post([then, shares = std::move(standings->shares)] { then(shares); });
  });
}

}  // namespace tp::api
