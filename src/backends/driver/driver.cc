#include "backends/driver/driver.h"

#include <utility>

#include "absl/time/clock.h"
#include "backends/driver/lane.h"
#include "backends/driver/missing_backend.h"
#include "backends/driver/outlet.h"

namespace tp::driver {

Driver::Driver(const std::map<std::string, std::shared_ptr<Backend>>& backends, DriverCallbacks callbacks,
               const DriverOptions& options)
    : options_(options), outlet_(std::make_shared<Outlet>(std::move(callbacks))) {
  for (const auto& [name, backend] : backends) lanes_[name] = Lane::Start(name, backend, outlet_, options_);
}

Driver::~Driver() { Shutdown(absl::Now() + options_.overrun); }

std::shared_ptr<Lane> Driver::LaneOf(const std::string& backend) {
  const std::lock_guard lock(mutex_);
  if (shut_down_) return nullptr;
  std::shared_ptr<Lane>& lane = lanes_[backend];
  if (!lane) lane = Lane::Start(backend, std::make_shared<MissingBackend>(backend), outlet_, options_);
  return lane;
}

void Driver::Push(int64_t outbox_id, const std::string& backend, Call call, const AttemptTarget& target) {
  if (const std::shared_ptr<Lane> lane = LaneOf(backend)) lane->Push(outbox_id, std::move(call), target);
}

void Driver::Launch(int64_t outbox_id, const std::string& backend, const LaunchSpec& spec,
                    const AttemptTarget& target) {
  Push(outbox_id, backend, LaunchCall{spec}, target);
}

void Driver::Fence(int64_t outbox_id, const std::string& backend, const AttemptTarget& target) {
  Push(outbox_id, backend, FenceCall{}, target);
}

void Driver::Signal(int64_t outbox_id, const std::string& backend, const AttemptTarget& target, StopLevel level) {
  Push(outbox_id, backend, SignalCall{level}, target);
}

void Driver::Remove(int64_t outbox_id, const std::string& backend, const AttemptTarget& target) {
  Push(outbox_id, backend, RemoveCall{}, target);
}

void Driver::Track(const std::string& backend, const AttemptTarget& target) {
  {
    const std::lock_guard lock(mutex_);
    backend_of_key_[target.key] = backend;
  }
  if (const std::shared_ptr<Lane> lane = LaneOf(backend)) lane->Track(target);
}

void Driver::Untrack(const std::string& key) {
  std::string backend;
  {
    const std::lock_guard lock(mutex_);
    const auto found = backend_of_key_.find(key);
    if (found == backend_of_key_.end()) return;
    backend = std::move(found->second);
    backend_of_key_.erase(found);
  }
  if (const std::shared_ptr<Lane> lane = LaneOf(backend)) lane->Untrack(key);
}

void Driver::Look(const std::string& backend, const AttemptTarget& target) {
  if (const std::shared_ptr<Lane> lane = LaneOf(backend)) lane->Look(target);
}

void Driver::LookAtCards(const std::string& /*backend*/) { outlet_->LookWanted(); }

void Driver::Shutdown(absl::Time deadline) {
  std::map<std::string, std::shared_ptr<Lane>> lanes;
  {
    const std::lock_guard lock(mutex_);
    shut_down_ = true;
    lanes.swap(lanes_);
  }
  for (const auto& [name, lane] : lanes) lane->Stop();
  for (const auto& [name, lane] : lanes) lane->AwaitEnd(deadline);
  outlet_->Close();
}

}  // namespace tp::driver
