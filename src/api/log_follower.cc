#include "api/log_follower.h"

#include <algorithm>
#include <utility>

#include "api/errors.h"
#include "api/job_files.h"
#include "api/run_directories.h"
#include "base/printable.h"
#include "base/status.h"

namespace tp::api {
namespace {

constexpr size_t kMaxPieceBytes = 256 * 1024;
constexpr std::string_view kFirstRank = "0-0";
constexpr std::string_view kAllRanks = "*";

bool IsDigits(std::string_view text) {
  return !text.empty() && text.size() <= 6 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

bool IsRank(std::string_view text) {
  const size_t dash = text.find('-');
  return dash != std::string_view::npos && IsDigits(text.substr(0, dash)) && IsDigits(text.substr(dash + 1));
}

bool WantsAll(const LogSelection& selection) {
  return std::find(selection.ranks.begin(), selection.ranks.end(), kAllRanks) != selection.ranks.end();
}

// By pool, then rank, as numbers.
bool RankBefore(const std::string& a, const std::string& b) {
  const auto key = [](const std::string& rank) {
    const size_t dash = rank.find('-');
    return std::pair(std::stoi(rank.substr(0, dash)), std::stoi(rank.substr(dash + 1)));
  };
  return key(a) < key(b);
}

}  // namespace

absl::Status CheckLogSelection(const LogSelection& selection) {
  for (const std::string& rank : selection.ranks) {
    if (rank != kAllRanks && !IsRank(rank)) {
      return FieldError("ranks", "{} is no rank: write <pool>-<rank> such as 0-1, or * for all", Quoted(rank));
    }
  }
  if (selection.step < 0) return FieldError("step", "step must not be negative: steps are counted from 1");
  if (selection.attempt < 0) return FieldError("attempt", "attempt must not be negative: attempts are counted from 1");
  return absl::OkStatus();
}

LogFollower::LogFollower(core::LaunchLayout layout, LogSelection selection)
    : layout_(std::move(layout)), selection_(std::move(selection)) {}

absl::Status LogFollower::Update(core::RunWithSteps run) {
  run_ = std::move(run);
  if (place_ || finished_) return absl::OkStatus();
  TP_ASSIGN_OR_RETURN(const std::optional<Place> first, FirstPlace());
  if (first) {
    // Where only the newest step was asked for, those before it were not.
    for (int step = 0; !all_steps() && step < first->step; ++step)
      entered_[step] = run_.steps[static_cast<size_t>(step)].attempts;
    Enter(*first);
    return absl::OkStatus();
  }
  // Nothing was ever launched.
  if (selection_.follow && !RunIsOver()) return absl::OkStatus();
  if (!selection_.follow && !RunIsOver()) {
    return WithReason(FailedPrecondition("{} has no log yet: it is {}; tp logs -f waits for it", run_.run.id(),
                                         core::Name(core::RollUp(run_.steps))),
                      "NO_LOG_YET");
  }
  finished_ = true;
  return absl::OkStatus();
}

absl::StatusOr<std::optional<LogPiece>> LogFollower::Next() {
  while (place_ && !finished_) {
    const bool over = IsOver(*place_);
    if (ranks_.empty()) TP_RETURN_IF_ERROR(OpenRanks());
    TP_ASSIGN_OR_RETURN(std::optional<LogPiece> piece, ReadRanks());
    if (piece) return piece;
    if (selection_.follow && !over) break;
    const std::optional<Place> next = selection_.follow || all_steps() ? NextPlace() : std::nullopt;
    if (!next) {
      finished_ = !selection_.follow || selection_.attempt != 0 || RunIsOver();
      break;
    }
    Enter(*next);
  }
  return std::optional<LogPiece>();
}

absl::StatusOr<std::optional<LogFollower::Place>> LogFollower::FirstPlace() const {
  const auto steps = static_cast<int>(run_.steps.size());
  if (selection_.step > steps) {
    return NotFound("{} has {} step{}, not {}", run_.run.id(), steps, steps == 1 ? "" : "s", selection_.step);
  }
  if (selection_.step > 0) return PlaceIn(selection_.step - 1);
  if (all_steps()) return NextPlace();
  int newest = steps - 1;
  while (newest > 0 && run_.steps[static_cast<size_t>(newest)].attempts == 0) --newest;
  return PlaceIn(newest);
}

absl::StatusOr<std::optional<LogFollower::Place>> LogFollower::PlaceIn(int step) const {
  const int launched = run_.steps[static_cast<size_t>(step)].attempts;
  if (selection_.attempt > launched && (launched > 0 || !selection_.follow)) {
    return NotFound("step {} of {} has {} attempt{}, not {}", step + 1, run_.run.id(), launched,
                    launched == 1 ? "" : "s", selection_.attempt);
  }
  if (launched == 0) return std::optional<Place>();
  return std::optional<Place>({.step = step, .attempt = selection_.attempt == 0 ? launched : selection_.attempt});
}

// What comes after the present attempt, where no certain one was asked for: of a step that is new to the
// reader the newest attempt, of another one the next.
std::optional<LogFollower::Place> LogFollower::NextPlace() const {
  if (selection_.attempt != 0) return std::nullopt;
  for (int step = 0; step < static_cast<int>(run_.steps.size()); ++step) {
    if (selection_.step != 0 && step != selection_.step - 1) continue;
    const int launched = run_.steps[static_cast<size_t>(step)].attempts;
    const auto entered = entered_.find(step);
    if (entered == entered_.end()) {
      if (launched > 0) return Place{.step = step, .attempt = launched};
    } else if (selection_.follow && entered->second < launched) {
      return Place{.step = step, .attempt = entered->second + 1};
    }
  }
  return std::nullopt;
}

bool LogFollower::IsOver(const Place& place) const {
  const core::Step& step = run_.steps[static_cast<size_t>(place.step)];
  return !step.attempt || step.attempt->number != place.attempt;
}

bool LogFollower::RunIsOver() const {
  if (selection_.step != 0) return core::IsTerminal(run_.steps[static_cast<size_t>(selection_.step) - 1].state);
  return core::IsTerminal(core::RollUp(run_.steps));
}

void LogFollower::Enter(const Place& place) {
  tail_first_ = !place_.has_value();
  place_ = place;
  entered_[place.step] = place.attempt;
  directory_.reset();
  ranks_.clear();
  next_rank_ = 0;
}

// Leaves ranks_ empty where the attempt's directory does not exist yet.
absl::Status LogFollower::OpenRanks() {
  const core::Step& step = run_.steps[static_cast<size_t>(place_->step)];
  auto directory = OpenAttemptDirectory(layout_, run_.run, step, place_->attempt);
  if (absl::IsNotFound(directory.status())) return absl::OkStatus();
  if (!directory.ok()) return directory.status();
  directory_ = std::make_shared<const Directory>(*std::move(directory));
  TP_ASSIGN_OR_RETURN(const std::vector<std::string> names, RankNames(*directory_));
  for (const std::string& name : names) {
    RankState rank{.rank = name, .log = RankLog(directory_, name + Suffix()), .offset = 0};
    if (tail_first_ && selection_.tail_lines >= 0) {
      TP_ASSIGN_OR_RETURN(rank.offset, rank.log.TailOffset(selection_.tail_lines));
    }
    ranks_.push_back(std::move(rank));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> LogFollower::RankNames(const Directory& directory) const {
  const core::Step& step = run_.steps[static_cast<size_t>(place_->step)];
  std::vector<std::string> known;
  const bool live = !IsOver(*place_);
  if (live) {
    for (size_t pool = 0; pool < step.attempt->placement.size(); ++pool) {
      const size_t ranks = step.attempt->placement[pool].ranks.size();
      for (size_t rank = 0; rank < ranks; ++rank) known.push_back(fmt::format("{}-{}", pool, rank));
    }
  } else {
    TP_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListNames(directory));
    for (std::string_view name : names) {
      const std::string suffix = Suffix();
      if (name.size() <= suffix.size() || name.substr(name.size() - suffix.size()) != suffix) continue;
      name.remove_suffix(suffix.size());
      if (IsRank(name)) known.emplace_back(name);
    }
    std::sort(known.begin(), known.end(), RankBefore);
  }
  if (WantsAll(selection_)) return known;
  std::vector<std::string> wanted = selection_.ranks;
  if (wanted.empty()) wanted.emplace_back(kFirstRank);
  if (all_steps() && run_.steps.size() > 1) {
    // Steps differ in their ranks: of each, those it has.
    wanted.erase(std::remove_if(wanted.begin(), wanted.end(),
                                [&](const std::string& rank) {
                                  return !known.empty() && std::find(known.begin(), known.end(), rank) == known.end();
                                }),
                 wanted.end());
  }
  for (const std::string& rank : wanted) {
    if (!known.empty() && std::find(known.begin(), known.end(), rank) == known.end()) {
      return WithField(NotFound("attempt {} of {} has no rank {}: it has {} to {}", place_->attempt, run_.run.id(),
                                rank, known.front(), known.back()),
                       "ranks");
    }
  }
  return wanted;
}

// One piece of the next rank that has something.
absl::StatusOr<std::optional<LogPiece>> LogFollower::ReadRanks() {
  for (size_t tried = 0; tried < ranks_.size(); ++tried) {
    RankState& rank = ranks_[next_rank_];
    next_rank_ = (next_rank_ + 1) % ranks_.size();
    TP_ASSIGN_OR_RETURN(LogBytes bytes, rank.log.Read(rank.offset, kMaxPieceBytes));
    rank.offset = bytes.offset + static_cast<int64_t>(bytes.data.size());
    if (!bytes.data.empty()) {
      LogPiece piece;
      piece.rank = rank.rank;
      piece.step = place_->step + 1;
      if (selection_.step == 0 && run_.steps.size() > 1) {
        piece.step_name = run_.steps[static_cast<size_t>(place_->step)].spec.name;
      }
      piece.attempt = place_->attempt;
      piece.bytes = std::move(bytes);
      return std::optional<LogPiece>(std::move(piece));
    }
  }
  return std::optional<LogPiece>();
}

std::string LogFollower::Suffix() const { return selection_.system ? ".system.log" : ".log"; }

}  // namespace tp::api
