// Trees of files on tpd's own storage, before and after they are copied. Safe from any thread; blocking.
//
// Errors: those of base/file.h; CANCELLED where `stopped` said so.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/file.h"

namespace tp::node {

// What other ranks' files are kept under at the top of a tree, where they differ from the first rank's.
inline constexpr char kOfRank[] = ".rank-";

struct LinkedTree {
  int64_t files = 0;  // and links
  int64_t bytes = 0;
};

// Makes `to` a tree of the same files by hard links, without what is of single ranks; `from` may be missing.
absl::StatusOr<LinkedTree> LinkTree(const std::string& from, const std::string& to,
                                    const std::function<bool()>& stopped);

// The bytes of the files in a tree.
absl::StatusOr<int64_t> BytesInTree(const std::string& path, const std::function<bool()>& stopped);

// Where the files that a rank has changed go.
struct MergePlan {
  std::string from;     // what it has changed: files, and links as rsync --munge-links leaves them
  std::string into;     // the tree that they are of
  std::string base;     // that tree as it was when the rank got it
  std::string of_rank;  // the rank's own beneath `into`: `.rank-0-1`
  bool first = false;   // pool 0, rank 0: its files win
};

// Moves them. Of another rank than the first, what somebody else has changed meanwhile is left as it is, and the rank's
// goes beneath `of_rank`, as does what is there already; the same content is left out. Nothing is ever written through
// a link. Repeated after a crash it comes to the same end.
absl::Status MergeTree(const MergePlan& plan, const std::function<bool()>& stopped);

}  // namespace tp::node
