// A copy that goes on behind the calls about its attempt: how far it is, and how it is called off. Thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/fd.h"

namespace tp::node {

class CopyJob {
 public:
  // UNAVAILABLE where the machine has no descriptor left.
  static absl::StatusOr<std::shared_ptr<CopyJob>> Make();

  // --- Of those who ask ---------------------------------------------------------------------------------
  bool under_way() const;
  // What is being done, in order of the machines: "copies output from node2: 3.2 GiB of 9.0 GiB"; after the end why it
  // did not come to what it was for, or nothing.
  std::string words() const;
  // From now on nothing more is begun, and what is under way ends.
  void CallOff();
  // The machine is no longer waited for.
  void GiveUp(const std::string& node);

  // --- Of the copy itself -------------------------------------------------------------------------------
  bool called_off() const;
  bool given_up(const std::string& node) const;
  // Readable once the job is called off.
  int cancel_fd() const { return cancel_.get(); }
  void Tell(const std::string& node, const std::string& words);  // empty: done there
  // False: called off, or given up on the node.
  bool Wait(const std::string& node, absl::Duration length) const;
  void End(const std::string& words);

 private:
  explicit CopyJob(UniqueFd cancel) : cancel_(std::move(cancel)) {}

  const UniqueFd cancel_;
  mutable std::mutex mutex_;
  bool under_way_ = true;
  bool called_off_ = false;
  std::map<std::string, std::string> told_;  // by node
  std::set<std::string> given_up_;
  std::string ended_with_;
};

// "3.2 GiB of 9.0 GiB".
std::string ProgressWords(int64_t done, int64_t total);

}  // namespace tp::node
