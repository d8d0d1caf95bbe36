#include "api/run_watch.h"

#include <chrono>
#include <deque>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/convert.h"
#include "api/hub_wait.h"
#include "api/request.h"
#include "api/run_reader.h"
#include "api/server_stream.h"

namespace tp::api {
namespace {

// Gates and `last seen` change without an event of the run.
constexpr absl::Duration kRefresh = absl::Seconds(2);
// Between two looks at a run, in times of what a look takes: an array of a thousand tasks changes all the time,
// and a look at it is long.
constexpr int kRest = 4;
constexpr absl::Duration kBookmarkEvery = absl::Seconds(30);
constexpr size_t kBatch = 256;
// How far behind a follower is still served from the store.
constexpr int64_t kMaxReplay = 10'000;

class WatchRunStream final : public ServerStream<v1::WatchRunResponse> {
 public:
  WatchRunStream(Context& context, grpc::CallbackServerContext* server_context, const v1::WatchRunRequest& request)
      : ServerStream(context, context.calls, server_context, "/tp.v1.RunService/WatchRun"),
        request_(request),
        wait_(context.hub) {}

 private:
  absl::Status Open(const Call& call) override {
    call_ = call;
    TP_ASSIGN_OR_RETURN(const core::RunWithSteps run, FindRun(context(), call, request_.run()));
    n_ = run.run.n;
    return absl::OkStatus();
  }

  // Asks for the run, waits for the answer, sends it where it differs, waits for a change.
  Next Produce(v1::WatchRunResponse* response) override {
    if (std::exchange(sent_now_, false)) return WaitForChange();
    if (asking_) return TakeAnswer(response);
    if (const auto early = not_before_ - Clock::now(); early > Clock::duration::zero())
      return Wait{absl::FromChrono(early)};
    Ask();
    return Wait{absl::InfiniteDuration()};
  }

  void Ask() {
    asking_ = true;
    asked_at_ = Clock::now();
    revision_ = context().hub.revision();  // read before the run, so that no later change is missed
    auto stored = context().reader.GetRun(n_);
    if (!stored.ok()) return Answer(stored.status());
    auto weak = weak_from_this();
    LoadLive(context(), {*std::move(stored)}, [weak](absl::StatusOr<std::vector<loop::LiveRun>> runs) {
      if (const auto self = weak.lock()) static_cast<WatchRunStream&>(*self).Answer(std::move(runs));
    });
  }

  // From any thread.
  void Answer(absl::StatusOr<std::vector<loop::LiveRun>> runs) {
    {
      const std::lock_guard lock(answer_mutex_);
      answer_ = std::move(runs);
    }
    Wake();
  }

  Next TakeAnswer(v1::WatchRunResponse* response) {
    std::optional<absl::StatusOr<std::vector<loop::LiveRun>>> answer;
    {
      const std::lock_guard lock(answer_mutex_);
      answer = std::exchange(answer_, std::nullopt);
    }
    if (!answer) return Wait{absl::InfiniteDuration()};
    if (!answer->ok()) return answer->status();
    asking_ = false;
    not_before_ = Clock::now() + kRest * (Clock::now() - asked_at_);
    v1::Run run = View(context(), call_, (*answer)->front());
    over_ = core::IsTerminal(core::RollUp((*answer)->front().run.steps));
    std::string bytes = DeterministicBytes(run);
    if (bytes == sent_) return WaitForChange();
    sent_ = std::move(bytes);
    sent_now_ = true;
    response->set_revision(revision_);
    *response->mutable_run() = std::move(run);
    return Write{};
  }

  Next WaitForChange() {
    if (over_) return absl::OkStatus();
    wait_.Arm(n_, revision_, [weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->Wake();
    });
    return Wait{kRefresh};
  }

  using Clock = std::chrono::steady_clock;

  const v1::WatchRunRequest request_;
  Call call_;
  int64_t n_ = 0;
  int64_t revision_ = 0;
  bool asking_ = false;
  Clock::time_point asked_at_;
  Clock::time_point not_before_ = {};  // of the next question
  bool over_ = false;
  bool sent_now_ = false;
  std::string sent_;  // bytes of the run as sent last
  HubWait wait_;
  std::mutex answer_mutex_;
  std::optional<absl::StatusOr<std::vector<loop::LiveRun>>> answer_;  // guarded by answer_mutex_
};

class WatchEventsStream final : public ServerStream<v1::WatchEventsResponse> {
 public:
  WatchEventsStream(Context& context, grpc::CallbackServerContext* server_context,
                    const v1::WatchEventsRequest& request)
      : ServerStream(context, context.calls, server_context, "/tp.v1.RunService/WatchEvents"),
        position_(request.after_revision()),
        wait_(context.hub) {}

 private:
  absl::Status Open(const Call& /*call*/) override {
    if (position_ < 0) return FieldError("after_revision", "after_revision must not be negative");
    const int64_t newest = context().hub.revision();
    if (position_ == 0) position_ = newest;
    // A revision of the future is one of a database that was restored since.
    if (position_ > newest || newest - position_ > kMaxReplay) resync_ = true;
    bookmark_due_ = context().now() + kBookmarkEvery;
    return absl::OkStatus();
  }

  Next Produce(v1::WatchEventsResponse* response) override {
    if (!resync_ && batch_.empty()) {
      if (auto status = Fetch(); !status.ok()) return status;
    }
    if (resync_) return Resync(response);
    if (!batch_.empty()) return Send(response);
    if (context().now() >= bookmark_due_) return Bookmark(response);
    wait_.Arm(0, position_, [weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->Wake();
    });
    return Wait{bookmark_due_ - context().now()};
  }

  absl::Status Fetch() {
    auto events = context().hub.After(position_, kBatch);
    if (!events) {
      if (context().hub.revision() - position_ > kMaxReplay) {
        resync_ = true;
        return absl::OkStatus();
      }
      TP_ASSIGN_OR_RETURN(events, context().reader.EventsAfter(position_, kBatch));
    }
    batch_.assign(std::make_move_iterator(events->begin()), std::make_move_iterator(events->end()));
    return absl::OkStatus();
  }

  Next Send(v1::WatchEventsResponse* response) {
    position_ = batch_.front().revision;
    *response->mutable_event() = ToProto(batch_.front());
    batch_.pop_front();
    return Written();
  }

  Next Resync(v1::WatchEventsResponse* response) {
    resync_ = false;
    batch_.clear();
    position_ = context().hub.revision();
    response->set_resync(position_);
    return Written();
  }

  Next Bookmark(v1::WatchEventsResponse* response) {
    response->set_bookmark(position_);
    return Written();
  }

  Next Written() {
    bookmark_due_ = context().now() + kBookmarkEvery;
    return Write{};
  }

  int64_t position_;  // everything up to here has been sent
  bool resync_ = false;
  std::deque<store::EventRow> batch_;
  absl::Time bookmark_due_;
  HubWait wait_;
};

}  // namespace

grpc::ServerWriteReactor<v1::WatchRunResponse>* StartWatchRun(Context& context,
                                                              grpc::CallbackServerContext* server_context,
                                                              const v1::WatchRunRequest& request) {
  return WatchRunStream::Start(std::make_shared<WatchRunStream>(context, server_context, request));
}

grpc::ServerWriteReactor<v1::WatchEventsResponse>* StartWatchEvents(Context& context,
                                                                    grpc::CallbackServerContext* server_context,
                                                                    const v1::WatchEventsRequest& request) {
  return WatchEventsStream::Start(std::make_shared<WatchEventsStream>(context, server_context, request));
}

}  // namespace tp::api
