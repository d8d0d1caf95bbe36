// What looks at cards saw: broken ones are taken out of service and named to the attempts that hold them, those of
// strangers are withheld, those that compute nothing are shown.
#include <algorithm>

#include "loop/loop.h"

namespace tp::loop {

void Loop::TakeCards(CardsSeen& seen) {
  std::set<std::string>& watched = watched_nodes_[seen.backend];
  watched.clear();
  for (const CardSight& card : seen.cards) watched.insert(card.node);
  core::UntakenFaults& untaken = untaken_faults_[seen.backend];
  for (core::CardFault& fault : core::StillBroken(seen.cards, untaken)) seen.faults.push_back(std::move(fault));
  for (const core::CardFault& fault : seen.faults) {
    untaken.insert_or_assign({.node = fault.node, .card = fault.card}, fault);
  }
  seen.faults = core::FaultsSince(std::move(seen.faults), seen.began, cleared_);
  for (const core::CardFault& fault : seen.faults) {
    if (TakeBroken(fault)) untaken.erase({.node = fault.node, .card = fault.card});
  }
  TellAttempts(seen);
  TakeStrangers(seen);
  TakeIdle(seen);
}

// False: somebody else's mark is on the card, which says nothing of the fault.
bool Loop::TakeBroken(const core::CardFault& fault) {
  const core::NodePart part{.node = fault.node, .card = fault.card};
  if (const core::NodeMark* const mark = nodes_.Find(part)) return mark->by == core::kTpd;
  PutMark(
      {.part = part, .kind = core::MarkKind::kDrained, .reason = fault.why, .by = std::string(core::kTpd), .at = now_});
  return true;
}

void Loop::TellAttempts(const CardsSeen& seen) {
  std::vector<std::pair<core::StepRef, core::CardsLooked>> told;
  for (const auto& [key, ref] : by_key_) {
    const core::Step* const step = FindStep(ref);
    if (step == nullptr || !step->attempt || step->attempt->shape.backend != seen.backend) continue;
    const core::Attempt& attempt = *step->attempt;
    core::CardsLooked looked{.began = seen.began, .faults = core::FaultsUnder(attempt, seen.faults)};
    const auto& asked = attempt.sight.look_asked;
    const bool answers = asked && *asked <= seen.began && CardsWatched(attempt);
    if (answers || !looked.faults.empty()) told.emplace_back(ref, std::move(looked));
  }
  for (const auto& [ref, looked] : told) Deliver(ref, looked);
}

void Loop::TellOfMended(const core::NodePart& card) {
  std::vector<core::StepRef> told;
  for (const auto& [key, ref] : by_key_) {
    const core::Step* const step = FindStep(ref);
    if (step == nullptr || !step->attempt) continue;
    const std::vector<core::NodePart> cards = core::RealCardsOf(*step->attempt);
    if (std::find(cards.begin(), cards.end(), card) != cards.end()) told.push_back(ref);
  }
  for (const core::StepRef& ref : told) Deliver(ref, core::CardPutBack{.node = card.node, .card = card.card});
}

void Loop::TakeStrangers(const CardsSeen& seen) {
  std::set<core::NodePart> held;
  for (const auto& [key, ref] : by_key_) {
    const core::Step* const step = FindStep(ref);
    if (step == nullptr || !step->attempt) continue;
    for (core::NodePart& card : core::RealCardsOf(*step->attempt)) held.insert(std::move(card));
  }
  std::vector<core::CardHeldElsewhere>& before = strangers_[seen.backend];
  std::vector<core::CardHeldElsewhere> strangers =
      core::CardsOfStrangers(seen.cards, seen.began, held, released_, before);
  if (before == strangers) return;
  before = std::move(strangers);
  Withhold();
}

void Loop::TakeIdle(const CardsSeen& seen) {
  if (settings_.policy.idle_after <= absl::ZeroDuration()) return;
  std::map<core::NodePart, CardSight> cards;
  for (const CardSight& card : seen.cards) cards.insert_or_assign({.node = card.node, .card = card.card}, card);
  for (const auto& [key, ref] : by_key_) {
    const core::Step* const step = FindStep(ref);
    const bool runs = step != nullptr && step->state == core::JobState::kRunning && step->attempt;
    if (runs && step->attempt->shape.backend == seen.backend) TakeIdle(*step, cards, seen.began);
  }
}

void Loop::TakeIdle(const core::Step& step, const std::map<core::NodePart, CardSight>& seen, absl::Time began) {
  const std::optional<bool> idle = core::AllIdle(*step.attempt, seen);
  if (!idle) return;
  if (!*idle) {
    idle_.erase(step.ref);
    return;
  }
  const core::IdleSpell fresh{.attempt = step.attempts, .since = began, .seen = began};
  core::IdleSpell& spell = idle_.try_emplace(step.ref, fresh).first->second;
  if (spell.attempt != step.attempts || began - spell.seen > core::kIdleUnseen) spell = fresh;
  spell.seen = began;
  if (spell.told || began - spell.since < settings_.policy.idle_after) return;
  spell.told = true;
  Log(step, store::kIdleEvent, step.state, step.state, core::IdleSentence(step.attempt->cards(), began - spell.since));
  batch_.steps.insert(step.ref);  // with its run's row comes what receivers are told
}

bool Loop::CardsWatched(const core::Attempt& attempt) const {
  const auto watched = watched_nodes_.find(attempt.shape.backend);
  return watched != watched_nodes_.end() && core::OnWatchedNodes(attempt, watched->second);
}

// An end that waits for a look asks for one, and so does a launch that was refused, as for a card that is not fit.
void Loop::FollowCards(const core::Step& before, const core::Step& step, const core::Event& event) {
  if (before.attempt && !step.attempt) {
    for (const core::NodePart& card : core::RealCardsOf(*before.attempt)) released_[card] = now_;
  }
  if (!step.attempt || !CardsWatched(*step.attempt)) return;
  const auto& asked = step.attempt->sight.look_asked;
  const bool asks = asked && !(before.attempt && before.attempt->sight.look_asked == asked);
  const auto* const answer = std::get_if<core::LaunchAnswered>(&event);
  const bool refused = answer != nullptr && std::holds_alternative<LaunchRefused>(*answer);
  if (!asks && !refused) return;
  batch_.leaving.push_back([this, backend = step.attempt->shape.backend] { sink_.LookAtCards(backend); });
}

std::optional<absl::Time> Loop::IdleSince(const core::Step& step) const {
  const auto found = idle_.find(step.ref);
  if (found == idle_.end() || !step.attempt || found->second.attempt != step.attempts) return std::nullopt;
  if (now_ - found->second.since < settings_.policy.idle_after) return std::nullopt;
  return found->second.since;
}

}  // namespace tp::loop
