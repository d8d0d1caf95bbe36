// Quota as people read it. Everything that others wrote is escaped here. Pure.
#pragma once

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "cli/terminal.h"
#include "tp/v1/quota.pb.h"

namespace tp::cli {

// `gpus 16/32, h200 16/16, jobs 1/8`: what is limited, and what is over says by how much. Not escaped.
std::string StandingSentence(const v1::Standing& standing);

// `gpus 16, jobs none`; of no limits: empty. Not escaped.
std::string LimitsText(const v1::QuotaLimits& limits);

// One screen: `tp admin quota show`.
std::string StandingPage(const v1::GetStandingResponse& response, const Terminal& terminal, absl::Time now);

// `tp admin quota list`: a user a line, the defaults first.
std::string QuotaTable(const std::vector<v1::Standing>& standings, const v1::QuotaLimits& defaults,
                       const Terminal& terminal);

}  // namespace tp::cli
