// What keeps jobs off nodes and cards: marks of admins and of tpd, cards that others hold.
#include <algorithm>

#include <fmt/format.h>

#include "base/printable.h"
#include "base/status.h"
#include "loop/loop.h"
#include "loop/principal.h"

namespace tp::loop {
namespace {

std::string NameOf(const core::NodePart& part) {
  return part.whole() ? part.node : fmt::format("card {} of {}", part.card, part.node);
}

bool HasRankOn(const core::Attempt& attempt, const std::string& node) {
  return std::any_of(attempt.placement.begin(), attempt.placement.end(), [&node](const PoolPlacement& pool) {
    return std::any_of(pool.ranks.begin(), pool.ranks.end(),
                       [&node](const RankPlacement& rank) { return rank.node == node; });
  });
}

}  // namespace

void Loop::LoadNodes(store::Loaded& loaded) {
  for (core::NodeMark& mark : loaded.node_marks) nodes_.Put(std::move(mark));
  for (core::Strike& strike : loaded.strikes) nodes_.Add(std::move(strike));
  Withhold();
}

// Of the registry, or of one that had it: a mark outlives an edit of the file.
absl::Status Loop::CheckPart(const core::NodePart& part) const {
  int cards = -1;
  for (const auto& [name, series] : registry_->series) {
    for (const core::Node& node : series.nodes) {
      if (node.name == part.node) cards = std::max(cards, series.gpus_per_node);
    }
  }
  if (cards < 0) return NotFound("there is no node {}: see tp admin nodes", Quoted(part.node));
  if (!part.whole() && part.card >= cards) {
    return NotFound("{} has {} card{}, counted from 0", part.node, cards, cards == 1 ? "" : "s");
  }
  return absl::OkStatus();
}

absl::StatusOr<Answer> Loop::Mark(const Command& command, const MarkNode& mark) {
  if (!command.who.at_least(store::Role::kOperator)) {
    return Error(absl::StatusCode::kPermissionDenied, "{} may not take nodes out of service: only operators can",
                 command.who.user);
  }
  if (mark.kind == core::MarkKind::kDead) {
    TP_RETURN_IF_ERROR(CheckAdmin(command.who, "declare nodes dead"));
    if (!mark.part.whole()) return InvalidArgument("a card is not declared dead, only its node");
  }
  TP_RETURN_IF_ERROR(CheckPart(mark.part));
  const core::NodeMark put{
      .part = mark.part, .kind = mark.kind, .reason = mark.reason, .by = command.who.user, .at = now_};
  PutMark(put);
  Answer answer;
  answer.note = fmt::format("{} is {}", NameOf(put.part), core::DescribeMark(put));
  Remember(command, answer);
  Audit(command, 0, answer.note);
  return answer;
}

absl::StatusOr<Answer> Loop::Clear(const Command& command, const ClearNode& clear) {
  if (!command.who.at_least(store::Role::kOperator)) {
    return Error(absl::StatusCode::kPermissionDenied, "{} may not put nodes into service: only operators can",
                 command.who.user);
  }
  const core::NodeMark* const mark = nodes_.Find(clear.part);
  const size_t strikes = clear.part.whole() ? nodes_.StrikesOf(clear.part.node, now_).size() : 0;
  if (mark == nullptr && strikes == 0) {
    return NotFound("{} is in service and has no strikes: see tp admin nodes", NameOf(clear.part));
  }
  Answer answer;
  answer.note = fmt::format("{} takes jobs again{}", NameOf(clear.part),
                            mark ? fmt::format("; it was {}", core::DescribeMark(*mark)) : "; its strikes are gone");
  batch_.txn.node_marks_removed.push_back(clear.part);
  nodes_.Drop(clear.part);
  cleared_[clear.part] = now_;
  if (!clear.part.whole()) TellOfMended(clear.part);
  if (clear.part.whole()) {
    batch_.txn.strikes_forgotten.push_back(clear.part.node);
    nodes_.DropStrikes(clear.part.node);
    TrackAgain(clear.part.node);
  }
  batch_.changed = true;
  Withhold();
  Remember(command, answer);
  Audit(command, 0, answer.note);
  return answer;
}

void Loop::PutMark(core::NodeMark mark) {
  const core::NodePart part = mark.part;
  batch_.txn.node_marks.push_back(mark);
  batch_.changed = true;
  const bool was_dead = nodes_.IsDead(part.node);
  nodes_.Put(std::move(mark));
  if (nodes_.IsDead(part.node) != was_dead) TrackAgain(part.node);
  Withhold();
}

// Where the engine is to be asked otherwise from now on.
void Loop::TrackAgain(const std::string& node) {
  for (const auto& [key, ref] : by_key_) {
    const core::RunWithSteps& run = runs_.at(ref.run);
    const core::Step& step = run.steps[static_cast<size_t>(ref.step)];
    if (!step.attempt || !HasRankOn(*step.attempt, node)) continue;
    batch_.leaving.push_back([this, backend = step.attempt->shape.backend,
                              target = TargetOf(run, step, *step.attempt)] { sink_.Track(backend, target); });
  }
}

void Loop::AddStrike(const core::RunWithSteps& run, const core::Step& step, const core::Attempt& attempt) {
  if (step.past.empty()) return;
  const core::PastAttempt& left = step.past.back();
  auto strike = core::StrikeOf(attempt, {.step = step.ref, .attempt = attempt.number}, run.run.owner, left);
  if (!strike) return;
  const std::string node = strike->node;
  batch_.txn.strikes.push_back(*strike);
  nodes_.Add(*std::move(strike));
  if (auto mark = nodes_.MarkForStrikes(node, now_)) PutMark(*std::move(mark));
}

void Loop::TakeElsewhere(CardsHeldElsewhere& held) {
  std::vector<core::CardHeldElsewhere>& before = elsewhere_[held.backend];
  if (before == held.cards) return;
  before = std::move(held.cards);
  Withhold();
}

void Loop::Withhold() {
  std::vector<core::CardHeldElsewhere> elsewhere;
  for (const auto* held : {&elsewhere_, &strangers_}) {
    for (const auto& [backend, cards] : *held) elsewhere.insert(elsewhere.end(), cards.begin(), cards.end());
  }
  planner_.Withhold(core::WithheldBy(nodes_, elsewhere));
}

void Loop::TakeNodes(NodesMessage& message) {
  NodesAnswer answer;
  for (const auto& [part, mark] : nodes_.marks()) answer.marks.push_back(mark);
  for (const auto& [name, series] : registry_->series) {
    for (const core::Node& node : series.nodes) {
      const bool seen = std::any_of(answer.strikes.begin(), answer.strikes.end(),
                                    [&](const core::Strike& strike) { return strike.node == node.name; });
      if (seen) continue;
      const std::vector<core::Strike> strikes = nodes_.StrikesOf(node.name, now_);
      answer.strikes.insert(answer.strikes.end(), strikes.begin(), strikes.end());
    }
  }
  for (const auto* held : {&elsewhere_, &strangers_}) {
    for (const auto& [backend, cards] : *held) {
      answer.elsewhere.insert(answer.elsewhere.end(), cards.begin(), cards.end());
    }
  }
  for (const auto& [key, ref] : by_key_) {
    const core::RunWithSteps& run = runs_.at(ref.run);
    const core::Step& step = run.steps[static_cast<size_t>(ref.step)];
    for (const PoolPlacement& pool : step.attempt->placement) {
      for (const RankPlacement& rank : pool.ranks) {
        std::vector<int> cards = rank.cards;
        if (cards.empty()) cards.push_back(core::NodePart::kWholeNode);
        for (const int card : cards) {
          answer.holders.push_back({{.node = rank.node, .card = card}, run.run.id(), run.run.owner});
        }
      }
    }
  }
  std::sort(answer.holders.begin(), answer.holders.end(), [](const auto& a, const auto& b) { return a.part < b.part; });
  batch_.leaving.push_back(
      [reply = std::move(message.reply), answer = std::move(answer)]() mutable { reply(std::move(answer)); });
}

}  // namespace tp::loop
