// SystemService.Reconcile: what the engines hold against the live attempts, and an end of the orphans.
#pragma once

#include "api/call.h"
#include "tp/v1/system.pb.h"

namespace tp::api {

// On a thread that may block: it takes the inventories of all engines.
void Reconcile(Context& context, const Call& call, const v1::ReconcileRequest& request, v1::ReconcileResponse* response,
               const Done& done);

}  // namespace tp::api
