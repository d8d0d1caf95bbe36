#include "sim/users.h"

#include <utility>

#include "base/strings.h"
#include "sim/fleet.h"
#include "sim/units.h"

namespace tp::sim {
namespace {

constexpr Span kNetwork = {100, 50 * kMillisecond};
constexpr Span kApi = {10, 5 * kMillisecond};
constexpr Span kTogether = {kMillisecond, 20 * kMillisecond};
constexpr Span kPatience = {2 * kSecond, 30 * kSecond};
constexpr Span kImpatience = {kMillisecond, 100 * kMillisecond};
constexpr int kMostTries = 12;

}  // namespace

Users::Users(const Options& options, const Defects& defects, Timeline& timeline, Rng& rng, Journal& journal,
             Server& server, Promises& promises)
    : options_(options),
      defects_(defects),
      timeline_(timeline),
      rng_(rng),
      journal_(journal),
      server_(server),
      promises_(promises),
      shapes_(ShapeFlags(options)) {}

// --- What they want -------------------------------------------------------------------------------

core::StepSpec Users::DrawSpec() {
  core::StepSpec spec;
  spec.name = "main";
  spec.argv = {"train"};
  spec.profiles = rng_.Pick(shapes_);
  const int64_t longest_us = options_.pace.run.high_us;
  if (rng_.Chance(options_.users.time_limited)) {
    spec.time_limit = absl::Microseconds(rng_.Draw({longest_us / 8, 2 * longest_us}));
  }
  if (rng_.Chance(options_.users.pending_limited)) spec.pending_timeout = absl::Seconds(rng_.Between(1, 120));
  if (rng_.Chance(200)) spec.start_timeout = absl::Seconds(rng_.Between(5, 120));
  if (rng_.Chance(300)) spec.user_retries = static_cast<int32_t>(rng_.Between(0, 3));
  if (rng_.Chance(300)) spec.infrastructure_retries = static_cast<int32_t>(rng_.Between(0, 4));
  return spec;
}

void Users::DrawSubmission(Request& request) {
  request.spec = DrawSpec();
  if (rng_.Chance(options_.users.invalid)) request.spec.profiles = {"nothing"};
  if (rng_.Chance(options_.users.arrays)) {
    request.array.emplace().limit = static_cast<int32_t>(rng_.Between(0, 3));
    const auto tasks = static_cast<int32_t>(rng_.Between(2, 6));
    for (int32_t index = 0; index < tasks; ++index) request.array->indices.push_back(index);
  }
  if (!runs_.empty() && rng_.Chance(options_.users.after)) {
    request.after = {rng_.Pick(runs_), static_cast<core::AfterWhen>(rng_.Between(0, 2))};
  }
}

void Users::SeedPipelines() {
  store::Txn txn;
  txn.meta = *server_.store().ReadMeta();
  for (int i = 0; i < options_.users.pipelines; ++i) {
    const int64_t n = txn.meta.next_run++;
    core::Run run;
    run.n = n;
    run.slug = "pipeline";
    run.owner = rng_.Pick(kOwners);
    run.project = run.owner;
    run.created_at = timeline_.now();
    run.snapshot_available = !rng_.Chance(options_.users.snapshot_gone);
    const auto steps = static_cast<int32_t>(rng_.Between(2, 4));
    for (int32_t index = 0; index < steps; ++index) {
      core::Step step;
      step.ref = {n, index};
      step.spec = DrawSpec();
      step.spec.name = fmt::format("step{}", index);
      if (index > 0) {
        const auto when = static_cast<core::AfterWhen>(rng_.Between(0, 2));
        step.spec.after = core::After{static_cast<int32_t>(rng_.Between(0, index - 1)), when};
      }
      step.created_at = run.created_at;
      step.entered_at = run.created_at;
      txn.steps.push_back(std::move(step));
    }
    runs_.push_back(n);
    owners_[n] = run.owner;
    txn.runs.push_back(std::move(run));
  }
  if (const absl::Status status = server_.store().Commit(txn); !status.ok()) {
    journal_.Break("the store refuses the pipelines: {}", Message(status));
  }
}

void Users::Start() {
  acting_ = true;
  ActLater();
  if (options_.users.between_reloads.high_us > 0) ReloadLater(true);
}

void Users::ActLater() {
  timeline_.In(rng_.Draw(options_.users.between_actions), [this] {
    if (!acting_) return;
    Act();
    ActLater();
  });
}

void Users::ReloadLater(bool shrunk) {
  timeline_.In(rng_.Draw(options_.users.between_reloads), [this, shrunk] {
    const bool last = !acting_;
    journal_.Note("users: the registry is {}", shrunk && !last ? "shrunk" : "whole");
    server_.Reload(std::make_shared<core::Registry>(MakeFleet(options_, shrunk && !last)));
    if (!last) ReloadLater(!shrunk);
  });
}

loop::Principal Users::DrawUser() {
  if (rng_.Chance(250)) return {std::string(kAdmin), store::Role::kAdmin};
  return {rng_.Pick(kOwners), store::Role::kUser};
}

void Users::Act() {
  auto request = std::make_shared<Request>();
  request->id = fmt::format("r{}", next_request_++);
  request->who = DrawUser();
  const int64_t choice = rng_.Between(0, options_.users.submit_weight + 6);
  if (runs_.empty() || choice < options_.users.submit_weight) {
    DrawSubmission(*request);
  } else {
    constexpr Ask kSteering[] = {Ask::kStop,   Ask::kPause, Ask::kPause, Ask::kResume,
                                 Ask::kResume, Ask::kRetry, Ask::kRetry};
    request->ask = kSteering[rng_.Between(0, 6)];
    // Mostly what is new: that is where things happen.
    const auto newest = static_cast<int64_t>(runs_.size()) - 1;
    request->run = runs_[static_cast<size_t>(newest - rng_.Draw({0, newest}))];
    if (request->who.role == store::Role::kUser && rng_.Chance(900)) request->who.user = owners_[request->run];
  }
  request->body = fmt::format("{}-{}", kAskNames[static_cast<size_t>(request->ask)], request->run);
  ++waiting_;
  Send(request);
}

// --- The way to the loop --------------------------------------------------------------------------

void Users::Send(const Shared& request) {
  if (request->done) return;
  if (++request->tries > kMostTries) {
    GiveUp(request);
    return;
  }
  timeline_.In(rng_.Draw(kNetwork), [this, request] { Arrive(request); });
  SendAgainLater(request, rng_.Chance(options_.users.impatient) ? kImpatience : kPatience);
}

void Users::SendAgainLater(const Shared& request, const Span& after) {
  timeline_.In(rng_.Draw(after), [this, request] { Send(request); });
}

void Users::GiveUp(const Shared& request) {
  request->done = true;
  --waiting_;
}

void Users::Arrive(const Shared& request) {
  if (!server_.up()) return;
  if (AnswerRemembered(request)) return;
  timeline_.In(rng_.Draw(kApi), [this, request, life = server_.life()] {
    if (server_.up() && server_.life() == life) Gather(request);
  });
}

// Some are one call with those of others, as if somebody had steered many runs at once.
void Users::Gather(const Shared& request) {
  if (!rng_.Chance(options_.users.bulk)) return PassOne(request);
  together_.push_back(request);
  if (together_.size() > 1) return;
  timeline_.In(rng_.Draw(kTogether), [this, life = server_.life()] {
    const std::vector<Shared> requests = std::exchange(together_, {});
    if (server_.up() && server_.life() == life) PassTogether(requests);
  });
}

// What an earlier life of tpd answered is in the store.
bool Users::AnswerRemembered(const Shared& request) {
  if (defects_.requests_forgotten) return false;
  const auto row = server_.store().FindRequest(request->who.user, request->id);
  if (!row.ok() || !*row) return false;
  if (request->ask == Ask::kSubmit) {
    promises_.Submitted(request->id, (*row)->run);
  } else {
    promises_.Kept(request->ask, request->run, HolderOf(*request), request->id, std::nullopt);
  }
  Receive(request);
  return true;
}

loop::Action Users::ActionOf(const Request& request, core::RunWithSteps stored) const {
  switch (request.ask) {
    case Ask::kSubmit:
      return SubmissionOf(request);
    case Ask::kStop:
      return loop::StopRun{std::move(stored)};
    case Ask::kPause:
      return loop::PauseRun{std::move(stored)};
    case Ask::kResume:
      return loop::ResumeRun{std::move(stored)};
    case Ask::kRetry:
      return RetryOf(std::move(stored));
  }
  return loop::SubmitRun{};
}

loop::SubmitRun Users::SubmissionOf(const Request& request) const {
  loop::SubmitRun submit;
  submit.name = "job";
  submit.labels["request"] = request.id;
  submit.steps = {request.spec};
  submit.array = request.array;
  if (!request.after) return submit;
  if (auto other = server_.store().GetRun(request.after->first); other.ok()) {
    submit.after.push_back({.stored = *std::move(other), .when = request.after->second});
  }
  return submit;
}

loop::RetryRun Users::RetryOf(core::RunWithSteps stored) const {
  loop::RetryRun retry;
  for (const core::RunDependency& dependency : stored.run.after) {
    if (auto other = server_.store().GetRun(dependency.run); other.ok()) retry.after.push_back(*std::move(other));
  }
  retry.stored = std::move(stored);
  return retry;
}

// Nothing: what it is about is not there.
std::optional<loop::Command> Users::CommandOf(const Shared& request) {
  core::RunWithSteps stored;
  if (request->ask != Ask::kSubmit) {
    auto found = server_.store().GetRun(request->run);
    if (!found.ok()) {
      Receive(request);
      return std::nullopt;
    }
    stored = *std::move(found);
  }
  loop::Command command;
  command.who = request->who;
  command.request_id = request->id;
  if (defects_.requests_forgotten) command.request_id += fmt::format("-{}", request->tries);
  command.method = std::string(kAskNames[static_cast<size_t>(request->ask)]);
  command.body_sha256 = request->body;
  command.action = ActionOf(*request, std::move(stored));
  journal_.Note("users: {} asks {} {} ({})", request->who.user, command.method, request->run, request->id);
  return command;
}

void Users::PassOne(const Shared& request) {
  std::optional<loop::Command> command = CommandOf(request);
  if (!command) return;
  const int64_t order = promises_.Sent(request->ask, request->run, request->id);
  if (defects_.replies_at_once) {
    loop::Answer answer;
    answer.run = request->ask == Ask::kSubmit ? server_.store().ReadMeta()->next_run : request->run;
    Answered(request, order, answer);
    server_.Post(*std::move(command), [](const absl::StatusOr<loop::Answer>&) {});
    return;
  }
  server_.Post(*std::move(command), [this, request, order](const absl::StatusOr<loop::Answer>& answer) {
    Answered(request, order, answer);
  });
}

void Users::PassTogether(const std::vector<Shared>& requests) {
  std::vector<loop::Command> commands;
  std::vector<std::pair<Shared, int64_t>> asked;
  for (const Shared& request : requests) {
    std::optional<loop::Command> command = CommandOf(request);
    if (!command) continue;
    commands.push_back(*std::move(command));
    asked.emplace_back(request, promises_.Sent(request->ask, request->run, request->id));
  }
  server_.Post(std::move(commands), [this, asked](const std::vector<absl::StatusOr<loop::Answer>>& answers) {
    for (size_t i = 0; i < asked.size(); ++i) Answered(asked[i].first, asked[i].second, answers.at(i));
  });
}

// --- The way back ---------------------------------------------------------------------------------

void Users::Answered(const Shared& request, int64_t order, const absl::StatusOr<loop::Answer>& answer) {
  const absl::StatusCode code = answer.status().code();
  journal_.Note("users: {} {} is answered: {}", request->id, request->run,
                answer.ok() ? answer->note : ToStd(answer.status().message()));
  if (answer.ok() && request->ask == Ask::kSubmit) {
    promises_.Submitted(request->id, answer->run);
    if (!owners_.contains(answer->run)) runs_.push_back(answer->run);
    owners_[answer->run] = request->who.user;
  } else if (answer.ok()) {
    promises_.Kept(request->ask, request->run, HolderOf(*request), request->id, order);
  } else if (code == absl::StatusCode::kInternal || code == absl::StatusCode::kUnknown) {
    journal_.Break("{} is answered with {}", request->id, Message(answer.status()));
  }
  if (code == absl::StatusCode::kUnavailable) return;  // asked again later, with the same id
  if (rng_.Chance(options_.users.reply_lost)) return;
  timeline_.In(rng_.Draw(kNetwork), [this, request] { Receive(request); });
}

core::Holder Users::HolderOf(const Request& request) const {
  const bool admin = request.who.role == store::Role::kAdmin && owners_.at(request.run) != request.who.user;
  return admin ? core::Holder::kAdmin : core::Holder::kOwner;
}

void Users::Receive(const Shared& request) {
  if (request->done) return;
  request->done = true;
  --waiting_;
}

}  // namespace tp::sim
