// The configuration in force, and how another one comes into force (DESIGN 3): all or nothing, whoever
// asks for it. Thread-safe. Reads files on the caller's thread.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "api/configuration_port.h"
#include "config/load.h"
#include "core/registry.h"
#include "notify/endpoints.h"

namespace tp::tpd {

class Configuration final : public api::ConfigurationPort {
 public:
  // Reads the files for the first time. An empty directory: the built-in ones.
  static absl::StatusOr<std::unique_ptr<Configuration>> Open(std::string directory);

  // What tpd runs with; of tpd.yaml all but the executors is as it was at the start.
  const config::ServerConfig& server() const { return server_; }
  const std::string& directory() const { return directory_; }
  std::shared_ptr<const core::Registry> registry() const;

  // Called with the receivers as they are now, and at each reload as they are from then on, secrets read anew.
  using EndpointsListener = std::function<void(const notify::Endpoints&)>;
  void FollowEndpoints(EndpointsListener listener);

  absl::StatusOr<api::ReloadPlan> Plan() override;
  absl::Status Reload(const HandOver& hand_over) override;
  api::RegistryStatus Status() override;

 private:
  struct Read {
    config::Loaded loaded;
    std::string source_sha256;
    notify::Endpoints endpoints;
  };

  Configuration(std::string directory, Read read);

  static absl::StatusOr<Read> ReadFiles(const std::string& directory);
  api::ReloadPlan Compare(const config::Loaded& loaded) const;
  void TakeIntoForce(Read read, api::ReloadPlan& plan);

  const std::string directory_;
  const config::ServerConfig server_;

  std::mutex reload_mutex_;               // one reload at a time, from reading to handing over
  notify::Endpoints endpoints_;           // guarded by reload_mutex_
  EndpointsListener endpoints_listener_;  // guarded by reload_mutex_

  mutable std::mutex mutex_;
  std::shared_ptr<const core::Registry> registry_;        // guarded by mutex_
  std::string source_sha256_;                             // guarded by mutex_
  absl::Time loaded_at_;                                  // guarded by mutex_
  std::optional<api::RegistryStatus::Fault> last_fault_;  // guarded by mutex_
  std::vector<std::string> restart_keys_;                 // guarded by mutex_
};

}  // namespace tp::tpd
