// Which nodes and cards take no new jobs, and why; and what was lost on them. An admin's marks and tpd's own;
// kept by the store, owned by the loop. Pure values: copy freely.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "core/ids.h"
#include "core/step.h"

namespace tp::core {

// A whole node, or one of its cards.
struct NodePart {
  std::string node;
  int card = kWholeNode;
  static constexpr int kWholeNode = -1;
  auto operator<=>(const NodePart&) const = default;

  bool whole() const { return card == kWholeNode; }
};

enum class MarkKind : uint8_t {
  kDrained,  // what runs there goes on
  kDead,     // DESIGN 5.11: what runs there ends without being asked
};

// What keeps new jobs away.
struct NodeMark {
  NodePart part;
  MarkKind kind = MarkKind::kDrained;
  std::string reason;
  std::string by;  // kTpd: tpd itself
  absl::Time at;
  bool operator==(const NodeMark&) const = default;
};
inline constexpr std::string_view kTpd = "tpd";

// An attempt that ended by the node's fault, as far as anybody can tell.
struct Strike {
  std::string node;
  AttemptRef attempt;
  std::string owner;
  FailureKind kind = FailureKind::kLost;
  absl::Time at;
  bool operator==(const Strike&) const = default;
};

// Attempts of so many users that were lost on a node within this time take it out of service: one user's job
// may be at fault itself, that of several is not.
inline constexpr absl::Duration kStrikeLife = absl::Hours(24);
inline constexpr size_t kStrikesOut = 3;
inline constexpr size_t kStrikeOwners = 2;

class NodeBook {
 public:
  void Put(NodeMark mark);
  void Drop(const NodePart& part);
  // Strikes that are over are forgotten with the next one of their node.
  void Add(Strike strike);
  void DropStrikes(const std::string& node);

  const std::map<NodePart, NodeMark>& marks() const { return marks_; }
  std::vector<Strike> StrikesOf(const std::string& node, absl::Time now) const;  // that still count, oldest first
  const NodeMark* Find(const NodePart& part) const;
  bool IsDead(const std::string& node) const;
  // What tpd itself puts on the node for its strikes; nothing: they are too few, or it has a mark already.
  std::optional<NodeMark> MarkForStrikes(const std::string& node, absl::Time now) const;

 private:
  std::map<NodePart, NodeMark> marks_;
  std::map<std::string, std::vector<Strike>> strikes_;
};

// The node of the card that broke, where that is how it failed; else of the first rank that was lost or signalled from
// outside: that others then ended on tpd's TERM says nothing of theirs. Empty: none was.
std::string BadNode(const Attempt& attempt);

// What the end of an attempt says against a node. `left`: how it was told, the newest of the step's past.
std::optional<Strike> StrikeOf(const Attempt& attempt, const AttemptRef& ref, const std::string& owner,
                               const PastAttempt& left);

// `drained by ada: new power supply`
std::string DescribeMark(const NodeMark& mark);

}  // namespace tp::core
