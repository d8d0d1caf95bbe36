// What copies to and from machines share.
#pragma once

#include <condition_variable>
#include <map>
#include <mutex>
#include <string>

#include "absl/time/time.h"
#include "backends/node/copied/copier.h"
#include "backends/node/copied/copy_job.h"
#include "backends/node/copied/owed.h"
#include "backends/node/host_links.h"

namespace tp::node {

// How many copies a machine has at a time. Thread-safe.
class CopySlots {
 public:
  // False: the job is called off, or given up on the node.
  bool Take(const std::string& node, const CopyJob& job);
  void GiveBack(const std::string& node);

 private:
  std::mutex mutex_;
  std::map<std::string, int> taken_;
};

struct CopySite {
  HostLinks& links;
  Copier& copier;
  Owed& owed;
  CopySlots& slots;
  const std::string& storage_root;
};

// The places of an attempt's copies on tpd's storage, beneath its attempt directory.
std::string BaseOf(const std::string& attempt_dir);                        // output and results as they were copied
std::string CameFrom(const std::string& attempt_dir, int pool, int rank);  // what is brought from a rank
std::string CopiesOf(const std::string& attempt_dir);                      // all of it

// A copy of the site's copier in its turn. CANCELLED where the job is over.
absl::Status CopyInTurn(const CopySite& site, const CopyOrder& order, CopyJob& job,
                        const std::function<void(int64_t bytes)>& progress);

// How long after the n-th failure in a row the next try comes.
absl::Duration TryAgainAfter(int failures);

}  // namespace tp::node
