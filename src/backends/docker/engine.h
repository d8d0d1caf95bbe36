// The calls of the Engine API that tp makes, typed. Thread-safe as the transport is. UNAVAILABLE: the engine did not
// answer, and may have carried the call out.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "backends/docker/container.h"
#include "backends/docker/engine_facts.h"
#include "backends/docker/engine_transport.h"

namespace tp::docker {

// What a call came to, where the engine answered.
struct EngineAnswer {
  enum class Kind { kDone, kConflict, kMissing, kRefused } kind = Kind::kDone;
  int status = 0;
  std::string words;  // the engine's, unless kDone

  bool done() const { return kind == Kind::kDone; }
};

class Engine {
 public:
  explicit Engine(EngineTransport& transport) : transport_(transport) {}

  // FAILED_PRECONDITION: an engine whose API tp does not speak, or that maps users.
  absl::StatusOr<EngineFacts> Facts(absl::Time deadline);

  absl::StatusOr<EngineAnswer> Create(const std::string& name, const std::string& body, absl::Time deadline);
  absl::StatusOr<EngineAnswer> Start(const std::string& name, absl::Time deadline);
  absl::StatusOr<EngineAnswer> Kill(const std::string& name, const std::string& signal, absl::Time deadline);
  absl::StatusOr<EngineAnswer> Remove(const std::string& name, absl::Time deadline);
  // Nothing: there is none of that name.
  absl::StatusOr<std::optional<Inspected>> Inspect(const std::string& name, absl::Time deadline);
  absl::StatusOr<std::string> InspectText(const std::string& name, absl::Time deadline);
  // Of all states; `labels` as NAME=VALUE. Running ones only where `running`.
  absl::StatusOr<std::vector<Container>> List(const std::vector<std::string>& labels, bool running,
                                              absl::Time deadline);

  // Runs a program inside a running container to its end: its exit code. Nothing: the container does not run.
  absl::StatusOr<std::optional<int>> Execute(const std::string& name, const std::vector<std::string>& argv,
                                             absl::Time deadline);

  absl::StatusOr<bool> HasImage(const std::string& image, absl::Time deadline);
  // Until it is there. `progress` is told how far it is, in words, and says whether that is enough. UNKNOWN: the engine
  // cannot get it, for good. ABORTED: it says that it cannot, which may pass. CANCELLED: it was enough.
  absl::Status Pull(const std::string& image, absl::Time deadline, const std::function<bool(std::string)>& progress);

  absl::StatusOr<EngineAnswer> CreateNetwork(const std::string& name, const std::string& body, absl::Time deadline);
  // Ids of those with the label.
  absl::StatusOr<std::vector<std::string>> ListNetworks(const std::string& label, absl::Time deadline);
  absl::StatusOr<EngineAnswer> RemoveNetwork(const std::string& name, absl::Time deadline);

  // Names of containers to which something has happened, for as long as the engine tells.
  absl::Status FollowEvents(const std::string& label, const std::function<void(const std::string& name)>& happened);

 private:
  absl::StatusOr<EngineAnswer> Call(const EngineRequest& request, absl::Time deadline);

  EngineTransport& transport_;
};

// One component of a path or query.
std::string UrlEncode(std::string_view text);

}  // namespace tp::docker
