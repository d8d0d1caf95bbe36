// The streams of RunService that follow commits.
#pragma once

#include "api/call.h"
#include "tp/v1/run.pb.h"

namespace tp::api {

// The run now, then each change of it; ends after its terminal state.
grpc::ServerWriteReactor<v1::WatchRunResponse>* StartWatchRun(Context& context,
                                                              grpc::CallbackServerContext* server_context,
                                                              const v1::WatchRunRequest& request);

// Events above a revision. Bookmarks while nothing happens; a follower that is too far behind is told
// to list again and goes on from the newest revision.
grpc::ServerWriteReactor<v1::WatchEventsResponse>* StartWatchEvents(Context& context,
                                                                    grpc::CallbackServerContext* server_context,
                                                                    const v1::WatchEventsRequest& request);

}  // namespace tp::api
