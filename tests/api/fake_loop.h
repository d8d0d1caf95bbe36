// A loop that does what the test says, answering from a thread of its own as the real one does.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "api/loop_port.h"
#include "api/worker_pool.h"
#include "base/status.h"

namespace tp::api {

class FakeLoop final : public LoopPort {
 public:
  using Handler = std::function<absl::StatusOr<loop::Answer>(const loop::Command&)>;
  using Foreteller = std::function<absl::StatusOr<loop::WhatIfAnswer>(const loop::WhatIfQuery&)>;
  using Previewer = std::function<absl::StatusOr<loop::Answer>(const loop::DryRun&)>;

  void Post(loop::Command command, loop::Reply reply) override {
    thread_.Post([this, command = std::move(command), reply = std::move(reply)] {
      Handler handler;
      {
        const std::lock_guard lock(mutex_);
        commands_.push_back(command);
        handler = handler_;
      }
      reply(handler ? handler(command) : Unavailable("the test gave no handler"));
    });
  }

  void Post(std::vector<loop::Command> commands, loop::BulkReply reply) override {
    thread_.Post([this, commands = std::move(commands), reply = std::move(reply)] {
      Handler handler;
      {
        const std::lock_guard lock(mutex_);
        commands_.insert(commands_.end(), commands.begin(), commands.end());
        ++bulks_;
        handler = handler_;
      }
      std::vector<absl::StatusOr<loop::Answer>> answers;
      for (const loop::Command& command : commands) answers.push_back(handler(command));
      reply(std::move(answers));
    });
  }

  void Post(loop::DryRun dry_run, loop::Reply reply) override {
    thread_.Post([this, dry_run = std::move(dry_run), reply = std::move(reply)] {
      Previewer previewer;
      {
        const std::lock_guard lock(mutex_);
        previewer = previewer_;
      }
      reply(previewer ? previewer(dry_run) : Unavailable("the test gave no previewer"));
    });
  }

  void Post(loop::Query query, loop::QueryReply reply) override {
    thread_.Post([this, query = std::move(query), reply = std::move(reply)] {
      std::vector<loop::LiveRun> answers;
      {
        const std::lock_guard lock(mutex_);
        for (const int64_t n : query.runs) {
          if (const auto found = live_.find(n); found != live_.end()) answers.push_back(found->second);
        }
      }
      reply(std::move(answers));
    });
  }

  void Post(loop::StandingQuery query, loop::StandingReply reply) override {
    thread_.Post([this, query = std::move(query), reply = std::move(reply)] {
      loop::Standings standings;
      {
        const std::lock_guard lock(mutex_);
        standings = standings_;
      }
      if (!query.everybody) {
        std::erase_if(standings.users, [&query](const loop::UserStanding& standing) {
          return std::find(query.users.begin(), query.users.end(), standing.user) == query.users.end();
        });
      }
      reply(std::move(standings));
    });
  }

  // Steps that are not queued any more are left out, as the loop does.
  void Post(loop::ForecastQuery query, loop::ForecastReply reply) override {
    thread_.Post([this, query = std::move(query), reply = std::move(reply)] {
      auto input = std::make_shared<plan::ForecastInput>();
      {
        const std::lock_guard lock(mutex_);
        ++forecasts_;
        *input = forecast_;
      }
      std::erase_if(input->waiting, [&query](const plan::ForecastStep& step) {
        return std::find(query.waiting.begin(), query.waiting.end(), step.ref) == query.waiting.end();
      });
      if (!input->registry) return reply(Unavailable("the test gave no forecast"));
      reply(std::shared_ptr<const plan::ForecastInput>(std::move(input)));
    });
  }

  void SetForecast(plan::ForecastInput input) {
    const std::lock_guard lock(mutex_);
    forecast_ = std::move(input);
  }
  int bulks() const {
    const std::lock_guard lock(mutex_);
    return bulks_;
  }
  int forecasts() const {
    const std::lock_guard lock(mutex_);
    return forecasts_;
  }

  void SetNodes(loop::NodesAnswer nodes) {
    const std::lock_guard lock(mutex_);
    nodes_ = std::move(nodes);
  }
  void Post(loop::NodesQuery /*query*/, loop::NodesReply reply) override {
    thread_.Post([this, reply = std::move(reply)] {
      loop::NodesAnswer nodes;
      {
        const std::lock_guard lock(mutex_);
        nodes = nodes_;
      }
      reply(std::move(nodes));
    });
  }
  void Post(loop::WhatIfQuery query, loop::WhatIfReply reply) override {
    thread_.Post([this, query = std::move(query), reply = std::move(reply)] {
      Foreteller foreteller;
      {
        const std::lock_guard lock(mutex_);
        proposals_.push_back(query);
        foreteller = foreteller_;
      }
      reply(foreteller ? foreteller(query) : Unavailable("the test gave no foreteller"));
    });
  }

  void SetStandings(loop::Standings standings) {
    const std::lock_guard lock(mutex_);
    standings_ = std::move(standings);
  }

  void OnCommand(Handler handler) {
    const std::lock_guard lock(mutex_);
    handler_ = std::move(handler);
  }
  void OnDryRun(Previewer previewer) {
    const std::lock_guard lock(mutex_);
    previewer_ = std::move(previewer);
  }
  void OnWhatIf(Foreteller foreteller) {
    const std::lock_guard lock(mutex_);
    foreteller_ = std::move(foreteller);
  }
  void SetLive(loop::LiveRun run) {
    const std::lock_guard lock(mutex_);
    live_[run.run.run.n] = std::move(run);
  }
  void Forget(int64_t n) {
    const std::lock_guard lock(mutex_);
    live_.erase(n);
  }
  std::vector<loop::WhatIfQuery> proposals() const {
    const std::lock_guard lock(mutex_);
    return proposals_;
  }
  std::vector<loop::Command> commands() const {
    const std::lock_guard lock(mutex_);
    return commands_;
  }

 private:
  mutable std::mutex mutex_;
  Handler handler_;                           // guarded by mutex_
  Previewer previewer_;                       // guarded by mutex_
  Foreteller foreteller_;                     // guarded by mutex_
  std::vector<loop::WhatIfQuery> proposals_;  // guarded by mutex_
  loop::Standings standings_;                 // guarded by mutex_
  loop::NodesAnswer nodes_;
  plan::ForecastInput forecast_;           // guarded by mutex_
  int bulks_ = 0;                          // posts of several commands together
  int forecasts_ = 0;                      // guarded by mutex_
  std::map<int64_t, loop::LiveRun> live_;  // guarded by mutex_
  std::vector<loop::Command> commands_;    // guarded by mutex_
  WorkerPool thread_{1};                   // last: its tasks use the above
};

}  // namespace tp::api
