// What every user holds now, kept up to date step by step, so that a look costs the user's own live
// attempts and nothing else (DESIGN 6, quota). Pure; not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "core/ledger.h"
#include "core/quota.h"
#include "core/step.h"

namespace tp::core {

inline constexpr char kEverybody[] = "";

class QuotaUsage {
 public:
  explicit QuotaUsage(absl::TimeZone accounting_zone) : zone_(accounting_zone) {}

  // The step's attempt as it is now; it holds nothing without one. True: the owner holds less than before.
  bool Follow(const std::string& owner, const Step& step);
  // A settled interval of a month.
  void AddSettled(const std::string& month, const std::string& owner, int64_t gpu_ms);
  // The owner kEverybody stands for all that a scan did not find: they use nothing.
  void SetStorage(const std::string& owner, StorageUse use) { storage_[owner] = use; }

  QuotaUse UseOf(const std::string& owner, absl::Time now) const;
  // What live attempts come to since they are metered, by owner; those without any are left out.
  std::map<std::string, int64_t> LiveGpuMs(absl::Time now) const;
  std::set<std::string> Owners() const;

 private:
  struct Live {
    std::map<std::string, int64_t> series_gpus;
    int64_t gpus = 0;
    std::optional<absl::Time> metered_from;
    std::optional<absl::Time> metered_to;  // closed
  };
  struct Owned {
    QuotaUse use;  // cards and slots
    std::map<StepRef, Live> live;
  };

  static Live LiveOf(const Attempt& attempt);
  static void Add(QuotaUse& use, const Live& live, int64_t sign);
  static int64_t MeteredSince(absl::Time since, const Owned& owned, absl::Time now);

  absl::TimeZone zone_;
  std::map<std::string, Owned> owned_;
  std::map<std::pair<std::string, std::string>, int64_t> settled_;  // month, owner
  std::map<std::string, StorageUse> storage_;
};

}  // namespace tp::core
