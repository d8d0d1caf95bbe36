// What a planner knows, without the indices that make its looks cheap: quick to take, and another planner can be
// made of it elsewhere. Values only.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "absl/time/time.h"
#include "core/fair_share.h"
#include "core/placement.h"
#include "core/quota.h"
#include "core/quota_use.h"
#include "core/registry.h"
#include "core/reservation.h"
#include "core/step.h"
#include "core/windows.h"
#include "plan/job_class.h"

namespace tp::plan {

struct Image {
  struct Waits {
    core::StepRef step;
    absl::Time submitted;
    std::optional<absl::Time> opens_at;  // by its own gates; absent: they are open
  };
  struct Class {
    ClassKey key;
    size_t first = 0;  // of its steps in `waiting`, up to the next class
  };

  core::Policy policy;
  absl::TimeZone zone;
  std::shared_ptr<const core::Registry> registry;
  core::Capacity capacity;
  core::QuotaBook quotas;
  core::QuotaUsage usage;
  core::Occupants occupants;
  core::HeldOpen held_open;
  core::FairShare fair_share;
  std::vector<Class> classes;
  std::vector<Waits> waiting;
};

}  // namespace tp::plan
