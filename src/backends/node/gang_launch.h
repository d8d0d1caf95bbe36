// The launch of an attempt on its machines: all ranks or none. First every machine is made ready, proves that it
// sees the attempt directory and that its cards are fit; only when all have, each is sent its ranks.
#pragma once

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "backends/node/host_links.h"
#include "backends/node/host_script.h"
#include "tp/attempt.h"
#include "tp/launch.h"

namespace tp::node {

// The ranks of one machine, as a spec of their own.
struct HostShare {
  RankHost host;
  LaunchSpec spec;
};
std::vector<HostShare> ShareOut(const LaunchSpec& spec);

struct GangSite {
  HostLinks& links;
  const RankBinary& binary;
  const std::string& deployment;
  const std::string& storage_root;
  // The machines share no storage with tpd: the attempt's files are on each of them, and the attempt is handed over
  // (copied/handover.h) before the first of them is sent its ranks.
  bool copied = false;
};

// The attempt directory is prepared. Blocks until every machine has answered, or `deadline`.
LaunchResult LaunchGang(const LaunchSpec& spec, const GangSite& site, absl::Time deadline);

}  // namespace tp::node
