// The loop as the API sees it: somewhere to post to. LoopThread in tpd, a fake in tests.
#pragma once

#include "loop/commands.h"

namespace tp::api {

// Thread-safe; returns at once. Every reply is called exactly once, on a thread of the loop's.
class LoopPort {
 public:
  virtual ~LoopPort() = default;
  virtual void Post(loop::Command command, loop::Reply reply) = 0;
  virtual void Post(std::vector<loop::Command> commands, loop::BulkReply reply) = 0;
  virtual void Post(loop::DryRun dry_run, loop::Reply reply) = 0;
  virtual void Post(loop::Query query, loop::QueryReply reply) = 0;
  virtual void Post(loop::StandingQuery query, loop::StandingReply reply) = 0;
  virtual void Post(loop::ForecastQuery query, loop::ForecastReply reply) = 0;
  virtual void Post(loop::WhatIfQuery query, loop::WhatIfReply reply) = 0;
  virtual void Post(loop::NodesQuery query, loop::NodesReply reply) = 0;
};

}  // namespace tp::api
