// What must be true once everything has come to rest.
#pragma once

#include <set>
#include <string>

#include "sim/journal.h"
#include "sim/monitor.h"
#include "sim/promises.h"
#include "sim/server.h"
#include "sim/world.h"

namespace tp::sim {

// Every step is over, PAUSED by somebody, or QUEUED behind a gate that time alone does not open; nothing
// is owed to an engine, nor to the ledger for records that will show.
bool AtRest(Server& server, const World& world);

// Why it is not, for a failure's message.
std::string Restless(Server& server, const World& world);

void CheckAtRest(Server& server, const World& world, const Promises& promises, const Monitor& monitor, absl::Time now,
                 Journal& journal);

}  // namespace tp::sim
