// The registry in force, for those who read it on any thread.
#pragma once

#include <memory>
#include <mutex>
#include <utility>

#include "core/registry.h"

namespace tp::tpd {

// Thread-safe.
class RegistryHolder {
 public:
  std::shared_ptr<const core::Registry> Get() const {
    const std::lock_guard lock(mutex_);
    return registry_;
  }

  // Takes it into force under the next version.
  std::shared_ptr<const core::Registry> Replace(core::Registry registry) {
    const std::lock_guard lock(mutex_);
    registry.version = registry_ ? registry_->version + 1 : 1;
    registry_ = std::make_shared<const core::Registry>(std::move(registry));
    return registry_;
  }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const core::Registry> registry_;  // guarded by mutex_
};

}  // namespace tp::tpd
