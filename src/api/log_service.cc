#include "api/log_service.h"

#include <memory>
#include <optional>
#include <utility>

#include "api/hub_wait.h"
#include "api/log_follower.h"
#include "api/run_reader.h"
#include "api/server_stream.h"

namespace tp::api {
namespace {

// Ranks write from other machines, where nothing tells us: the files are looked at again.
constexpr absl::Duration kPoll = absl::Milliseconds(100);

LogSelection SelectionOf(const v1::ReadLogRequest& request) {
  return {.step = request.step(),
          .attempt = request.attempt(),
          .ranks = {request.ranks().begin(), request.ranks().end()},
          .tail_lines = request.tail_lines(),
          .follow = request.follow(),
          .system = request.system()};
}

class ReadLogStream final : public ServerStream<v1::ReadLogResponse> {
 public:
  ReadLogStream(Context& context, grpc::CallbackServerContext* server_context, const v1::ReadLogRequest& request)
      : ServerStream(context, context.files, server_context, "/tp.v1.LogService/ReadLog"),
        selector_(request.run()),
        selection_(SelectionOf(request)),
        follower_(context.facts.layout, selection_),
        wait_(context.hub) {}

 private:
  absl::Status Open(const Call& call) override {
    TP_RETURN_IF_ERROR(CheckLogSelection(selection_));
    seen_ = context().hub.revision();  // before the run, so that no later change is missed
    TP_ASSIGN_OR_RETURN(core::RunWithSteps run, FindRun(context(), call, selector_));
    TP_RETURN_IF_ERROR(CheckMayReadContent(call, run.run));
    n_ = run.run.n;
    return follower_.Update(std::move(run));
  }

  Next Produce(v1::ReadLogResponse* response) override {
    auto piece = follower_.Next();
    if (!piece.ok()) return piece.status();
    if (*piece) return Send(*std::move(*piece), response);
    if (follower_.finished()) return absl::OkStatus();
    if (changed_.exchange(false)) return Update();
    if (!armed_) Arm();
    return Wait{kPoll};
  }

  Next Send(LogPiece piece, v1::ReadLogResponse* response) {
    response->set_rank(piece.rank);
    response->set_step(piece.step);
    response->set_step_name(piece.step_name);
    response->set_attempt(piece.attempt);
    response->set_offset(piece.bytes.offset);
    response->set_data(std::move(piece.bytes.data));
    return Write{};
  }

  Next Update() {
    armed_ = false;
    seen_ = context().hub.revision();
    auto run = context().reader.GetRun(n_);
    if (!run.ok()) return run.status();
    if (auto status = follower_.Update(*std::move(run)); !status.ok()) return status;
    return Wait{absl::ZeroDuration()};
  }

  void Arm() {
    armed_ = true;
    wait_.Arm(n_, seen_, [weak = weak_from_this()] {
      const auto self = weak.lock();
      if (!self) return;
      static_cast<ReadLogStream&>(*self).changed_ = true;
      self->Wake();
    });
  }

  const std::string selector_;
  const LogSelection selection_;
  LogFollower follower_;
  int64_t n_ = 0;
  int64_t seen_ = 0;  // revision that the follower's run is at least of
  bool armed_ = false;
  std::atomic<bool> changed_ = false;
  HubWait wait_;
};

}  // namespace

grpc::ServerWriteReactor<v1::ReadLogResponse>* LogService::ReadLog(grpc::CallbackServerContext* server_context,
                                                                   const v1::ReadLogRequest* request) {
  return ReadLogStream::Start(std::make_shared<ReadLogStream>(context_, server_context, *request));
}

}  // namespace tp::api
