#include "tpd/configuration.h"

#include <utility>

#include "absl/time/clock.h"
#include "base/fault_point.h"
#include "base/status.h"
#include "tpd/in_kubernetes.h"

namespace tp::tpd {
absl::StatusOr<std::unique_ptr<Configuration>> Configuration::Open(std::string directory) {
  TP_ASSIGN_OR_RETURN(Read read, ReadFiles(directory));
  return std::unique_ptr<Configuration>(new Configuration(std::move(directory), std::move(read)));
}

Configuration::Configuration(std::string directory, Read read)
    : directory_(std::move(directory)),
      server_(std::move(read.loaded.server)),
      endpoints_(std::move(read.endpoints)),
      source_sha256_(std::move(read.source_sha256)),
      loaded_at_(absl::Now()) {
  read.loaded.registry.version = 1;
  registry_ = std::make_shared<const core::Registry>(std::move(read.loaded.registry));
}

std::shared_ptr<const core::Registry> Configuration::registry() const {
  const std::lock_guard lock(mutex_);
  return registry_;
}

absl::StatusOr<Configuration::Read> Configuration::ReadFiles(const std::string& directory) {
  TP_ASSIGN_OR_RETURN(config::Sources sources, config::ReadSources(directory));
  sources.in_kubernetes = InKubernetes();
  Read read;
  TP_ASSIGN_OR_RETURN(read.loaded, config::Load(sources));
  read.source_sha256 = sources.Hash();
  TP_ASSIGN_OR_RETURN(read.endpoints, notify::LoadEndpoints(read.loaded.registry.receivers));
  return read;
}

api::ReloadPlan Configuration::Compare(const config::Loaded& loaded) const {
  api::ReloadPlan plan;
  plan.current = registry();
  plan.candidate = std::make_shared<const core::Registry>(loaded.registry);
  plan.changes = config::Differences(*plan.current, loaded.registry);
  plan.restart_keys = config::RestartKeys(server_, loaded.server);
  return plan;
}

void Configuration::FollowEndpoints(EndpointsListener listener) {
  const std::lock_guard lock(reload_mutex_);
  endpoints_listener_ = std::move(listener);
  endpoints_listener_(endpoints_);
}

absl::StatusOr<api::ReloadPlan> Configuration::Plan() {
  const absl::StatusOr<Read> read = ReadFiles(directory_);
  if (!read.ok()) return FailedPrecondition("{}", Message(read.status()));
  return Compare(read->loaded);
}

void Configuration::TakeIntoForce(Read read, api::ReloadPlan& plan) {
  const std::lock_guard lock(mutex_);
  if (plan.changes.empty()) {
    plan.candidate = registry_;
  } else {
    read.loaded.registry.version = registry_->version + 1;
    registry_ = std::make_shared<const core::Registry>(std::move(read.loaded.registry));
    plan.candidate = registry_;
    loaded_at_ = absl::Now();
  }
  source_sha256_ = std::move(read.source_sha256);
  restart_keys_ = plan.restart_keys;
  last_fault_.reset();
}

absl::Status Configuration::Reload(const HandOver& hand_over) {
  const std::lock_guard one_at_a_time(reload_mutex_);
  absl::StatusOr<Read> read = ReadFiles(directory_);
  if (!read.ok()) {
    const std::lock_guard lock(mutex_);
    last_fault_ = {.at = absl::Now(), .text = std::string(Message(read.status()))};
    return FailedPrecondition("{}", last_fault_->text);
  }
  api::ReloadPlan plan = Compare(read->loaded);
  ReachFaultPoint(FaultPoint::kBeforeReload);
  endpoints_ = read->endpoints;
  TakeIntoForce(*std::move(read), plan);
  ReachFaultPoint(FaultPoint::kReloadInForce);
  hand_over(plan);
  if (endpoints_listener_) endpoints_listener_(endpoints_);  // may wait: after all else is in force
  ReachFaultPoint(FaultPoint::kAfterReload);
  return absl::OkStatus();
}

api::RegistryStatus Configuration::Status() {
  const auto on_disk = config::ReadSources(directory_);
  const std::lock_guard lock(mutex_);
  return {.version = registry_->version,
          .loaded_at = loaded_at_,
          .source_sha256 = source_sha256_,
          .directory = directory_,
          .last_fault = last_fault_,
          .differs_on_disk = !on_disk.ok() || on_disk->Hash() != source_sha256_,
          .restart_keys = restart_keys_};
}

}  // namespace tp::tpd
