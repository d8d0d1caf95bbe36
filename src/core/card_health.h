// What looks at cards mean for the attempts that hold them: which broke under one, which compute nothing, and what
// computes on cards that nobody was given. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "core/node_book.h"
#include "core/step.h"
#include "core/withheld.h"
#include "tp/nodes.h"

namespace tp::core {

// What is broken, why and since when, as it was told last. Once: what an admin has seen to and cleared is not taken out
// again by an old line of a log.
struct KnownFault {
  std::string why;
  std::optional<absl::Time> broke_at;
};
using KnownFaults = std::map<NodePart, KnownFault>;

// Faults that `known` does not have, which then has them; of nodes that were not seen it keeps what it had.
std::vector<CardFault> NewFaults(const std::vector<CardSight>& seen, KnownFaults& known);

// Those of a look that are still worth knowing: not of cards that an admin has put back into service since it began.
// `cleared`: when that was last.
std::vector<CardFault> FaultsSince(std::vector<CardFault> faults, absl::Time began,
                                   const std::map<NodePart, absl::Time>& cleared);

// Faults that no mark could be put for when they were told, and are to be told again: an admin had taken the card out
// for a reason of their own, or put it back while the look went on. Of those that `seen` has all the same the card is
// still broken; they are taken from `untaken`, and so are those of cards that are whole.
using UntakenFaults = std::map<NodePart, CardFault>;
std::vector<CardFault> StillBroken(const std::vector<CardSight>& seen, UntakenFaults& untaken);

// The real cards that an attempt holds: none of virtual series, none where the engine chooses.
std::vector<NodePart> RealCardsOf(const Attempt& attempt);

// Whether it holds real cards, all of them on these nodes.
bool OnWatchedNodes(const Attempt& attempt, const std::set<std::string>& nodes);

// The first fault of a card names it: what is found of it later is often a consequence.
bool HasCardFault(const Attempt& attempt, const CardFault& fault);
bool AnyNewCardFault(const Attempt& attempt, const std::vector<CardFault>& faults);

// Those of `faults` that befell the attempt and are not known of its cards yet.
std::vector<CardFault> FaultsUnder(const Attempt& attempt, const std::vector<CardFault>& faults);

// Cards of nobody's with a process on them. `held` are those of live attempts; `released`: when cards were given back,
// for a process seen before that may have been its job's. Of nodes that were not seen those of `before` stay.
std::vector<CardHeldElsewhere> CardsOfStrangers(const std::vector<CardSight>& seen, absl::Time began,
                                                const std::set<NodePart>& held,
                                                const std::map<NodePart, absl::Time>& released,
                                                const std::vector<CardHeldElsewhere>& before);

// Whether every card of the attempt computes nothing at all; nothing: not all were seen.
std::optional<bool> AllIdle(const Attempt& attempt, const std::map<NodePart, CardSight>& seen);

// A time in which all cards of an attempt computed nothing.
struct IdleSpell {
  int32_t attempt = 0;
  absl::Time since;   // the first look that found it so
  absl::Time seen;    // the last
  bool told = false;  // the owner was
};
// Looks come every ten seconds; what nobody has looked at for so long may have worked meanwhile.
inline constexpr absl::Duration kIdleUnseen = absl::Minutes(1);

// `its 16 cards have done nothing for 42 min`
std::string IdleSentence(int64_t cards, absl::Duration idle);

}  // namespace tp::core
