// Looks at the cards of machines that are reached by ssh: one program a machine, which runs nvidia-smi there and reads
// the kernel's log, and bounds itself. A machine that has no nvidia-smi, does not answer, or whose nvidia-smi hangs
// has nothing to say.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "backends/node/host_links.h"
#include "backends/node/host_reply.h"
#include "launch/gpu_report.h"
#include "tp/launch.h"
#include "tp/nodes.h"

namespace tp::node {

// A look as part of another program of sh; ends within seven seconds and prints lines of the word `gpu`.
std::string LookAtCardsPart();

// The same as a program of its own.
std::string LookAtCardsProgram();

// What such a part said; nothing: it was not asked, or cannot tell.
std::optional<launch::GpuLook> CardsIn(const HostReply& reply);
// nvidia-smi did not end in time there.
bool HungIn(const HostReply& reply);

// Whether any rank is given devices.
bool HasRealCards(const LaunchSpec& spec);

// The looks at all machines of a backend. Not thread-safe: for the one thread that looks.
class CardLooks {
 public:
  // Of the machines that answer; blocks until all asked have, or `deadline`. What is held for down is not asked, and
  // neither, for a while, is one whose nvidia-smi hangs: it may never end, and must not pile up there.
  std::vector<CardSight> Look(HostLinks& links, const std::vector<NodeCards>& nodes, absl::Time deadline);

 private:
  std::map<std::string, absl::Duration> not_before_;  // by node, of the monotonic clock
};

}  // namespace tp::node
