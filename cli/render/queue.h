// The queue, and why a run waits in it, as people read it. Everything that others wrote is escaped here.
// Pure.
#pragma once

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "cli/terminal.h"
#include "tp/v1/run.pb.h"

namespace tp::cli {

std::string QueueTable(const std::vector<v1::QueueEntry>& entries, bool wide, const Terminal& terminal, absl::Time now);

// `3 steps wait, for 40 cards`
std::string QueueSentence(int64_t steps, int64_t cards);

// `tp why`: what holds each waiting step, what would start now, and what is ahead.
std::string WhyPage(const v1::ExplainRunResponse& response, const Terminal& terminal, absl::Time now);

}  // namespace tp::cli
