// An admin who edits quotas, holds windows open and drains nodes, while everything else goes on.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "sim/journal.h"
#include "sim/options.h"
#include "sim/rng.h"
#include "sim/server.h"
#include "sim/timeline.h"

namespace tp::sim {

class Admin {
 public:
  // All outlive the admin.
  Admin(const Options& options, Timeline& timeline, Rng& rng, Journal& journal, Server& server);

  void Start();
  // No limits and no holds from now on; asked again until it is answered.
  void Stop();
  bool Content() const;

  // Sees to a broken card sooner or later. `mended` is called with cards that were put into service again.
  void SeeTo(const core::NodePart& part);
  void OnMended(std::function<void(const core::NodePart&)> mended) { mended_ = std::move(mended); }

 private:
  void ActLater();
  void Act();
  void LiftLimit(const std::string& user);
  void HoldOpen();
  void LiftLimits();
  void TouchNode();
  void ClearNodes();
  void Clear(const core::NodePart& part);
  std::vector<core::NodePart> Parts() const;
  void Post(loop::Action action, std::function<void()> done);

  const Options& options_;
  Timeline& timeline_;
  Rng& rng_;
  Journal& journal_;
  Server& server_;
  std::function<void(const core::NodePart&)> mended_ = [](const core::NodePart&) {};
  std::set<std::string> limited_;  // users who may have a rule
  int64_t next_request_ = 1;
  bool acting_ = false;
};

}  // namespace tp::sim
