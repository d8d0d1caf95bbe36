// DESIGN 8: the one word of a run.
#include <array>
#include <functional>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "core/run.h"

namespace tp::core {
namespace {

using enum JobState;

Step Make(int32_t index, JobState state, std::optional<After> after = std::nullopt) {
  Step step;
  step.ref = {1, index};
  step.state = state;
  step.spec.after = after;
  return step;
}

RunWord Two(JobState first, JobState second, AfterWhen when = AfterWhen::kSuccess) {
  return RollUp({Make(0, first), Make(1, second, After{0, when})});
}

TEST(RollUp, OneStepIsItsState) {
  for (int state = 0; state < kJobStateCount; ++state) {
    const auto as_state = static_cast<JobState>(state);
    EXPECT_EQ(Name(RollUp({Make(0, as_state)})), Name(as_state));
  }
}

TEST(RollUp, AWaitingStepIsIgnoredWhileAnotherIsLiveOrPaused) {
  EXPECT_EQ(Two(kRunning, kQueued), RunWord::kRunning);
  EXPECT_EQ(Two(kPending, kQueued), RunWord::kPending);
  EXPECT_EQ(Two(kPaused, kQueued), RunWord::kPaused);
  EXPECT_EQ(Two(kSucceeded, kQueued), RunWord::kQueued);
  EXPECT_EQ(Two(kSucceeded, kRunning), RunWord::kRunning);
}

TEST(RollUp, PartialMeansTrainingWorkedAndTheRestDidNot) {
  EXPECT_EQ(Two(kSucceeded, kSucceeded), RunWord::kSucceeded);
  EXPECT_EQ(Two(kSucceeded, kFailed), RunWord::kPartial);
  EXPECT_EQ(Two(kSucceeded, kStopped), RunWord::kPartial);
  EXPECT_EQ(Two(kFailed, kStopped), RunWord::kFailed);
  EXPECT_EQ(Two(kStopped, kStopped), RunWord::kStopped);
}

TEST(RollUp, ACleanupStepCannotImproveTheWord) {
  EXPECT_EQ(Two(kFailed, kSucceeded, AfterWhen::kFailure), RunWord::kFailed);
  EXPECT_EQ(Two(kFailed, kSucceeded, AfterWhen::kAlways), RunWord::kFailed);
  Step unneeded = Make(1, kStopped, After{0, AfterWhen::kFailure});
  unneeded.failure = Failure{FailureKind::kDependency, "not needed"};
  EXPECT_EQ(RollUp({Make(0, kSucceeded), unneeded}), RunWord::kSucceeded);
}

// --- Two steps, by hand ---------------------------------------------------------------------------
// Columns and rows: Q S P R Z(paused) +(succeeded) F T(stopped) d(stopped since it can never run).

constexpr std::string_view kStates = "QSPRZ+FTd";

Step Of(char letter, int32_t index, std::optional<After> after) {
  if (letter == 'd') {
    Step step = Make(index, kStopped, after);
    step.failure = Failure{FailureKind::kDependency, "it can never run"};
    return step;
  }
  constexpr std::string_view kByState = "QSPRZ+FT";
  constexpr std::array kOrder = {kQueued, kSubmitted, kPending, kRunning, kPaused, kSucceeded, kFailed, kStopped};
  return Make(index, kOrder[kByState.find(letter)], after);
}

char Letter(RunWord word) {
  switch (word) {
    case RunWord::kQueued:
      return 'Q';
    case RunWord::kSubmitted:
      return 'S';
    case RunWord::kPending:
      return 'P';
    case RunWord::kRunning:
      return 'R';
    case RunWord::kPaused:
      return 'Z';
    case RunWord::kSucceeded:
      return '+';
    case RunWord::kFailed:
      return 'F';
    case RunWord::kStopped:
      return 'T';
    case RunWord::kPartial:
      return '%';
  }
  return '?';
}

struct Pair {
  const char* name;
  std::optional<After> after;
  std::array<std::string_view, 9> words;  // a row for each state of the first, a letter for each of the second
};

const std::array<Pair, 4> kPairs = {{
    {"on success",
     After{0, AfterWhen::kSuccess},
     {"QSPRQQQQQ", "SSPRSSSSS", "PPPRPPPPP", "RRRRRRRRR", "ZSPRZZZZZ", "QSPRZ+%%%", "QSPRZFFFF", "QSPRZTTTT",
      "QSPRZTTTT"}},
    {"on failure",
     After{0, AfterWhen::kFailure},
     {"QSPRQQQQQ", "SSPRSSSSS", "PPPRPPPPP", "RRRRRRRRR", "ZSPRZZZZZ", "QSPRZ+%%+", "QSPRZFFFF", "QSPRZTTTT",
      "QSPRZTTTT"}},
    {"always",
     After{0, AfterWhen::kAlways},
     {"QSPRQQQQQ", "SSPRSSSSS", "PPPRPPPPP", "RRRRRRRRR", "ZSPRZZZZZ", "QSPRZ+%%+", "QSPRZFFFF", "QSPRZTTTT",
      "QSPRZTTTT"}},
    {"side by side",
     std::nullopt,
     {"QSPRQQQQQ", "SSPRSSSSS", "PPPRPPPPP", "RRRRRRRRR", "QSPRZZZZZ", "QSPRZ+FTT", "QSPRZFFFF", "QSPRZTFTT",
      "QSPRZTFTT"}},
}};

TEST(RollUp, TwoStepsAsTheTableByHandSays) {
  for (const Pair& pair : kPairs) {
    for (size_t first = 0; first < kStates.size(); ++first) {
      for (size_t second = 0; second < kStates.size(); ++second) {
        const RunWord word = RollUp({Of(kStates[first], 0, std::nullopt), Of(kStates[second], 1, pair.after)});
        EXPECT_EQ(Letter(word), pair.words[first][second])
            << pair.name << ": first " << kStates[first] << ", second " << kStates[second];
      }
    }
  }
}

// --- Up to four steps, against the sentence of DESIGN 8, written anew -------------------------------

struct Oracle {
  std::string_view letters;
  const std::vector<std::optional<After>>& after;

  bool Live(size_t i) const { return std::string_view("QSPR").find(letters[i]) != std::string_view::npos; }
  bool Over(size_t i) const { return !Live(i) && letters[i] != 'Z'; }
  bool Waits(size_t i) const {
    return letters[i] == 'Q' && after[i].has_value() && !Over(static_cast<size_t>(after[i]->step));
  }
  bool Cleanup(size_t i) const { return after[i] && after[i]->when != AfterWhen::kSuccess; }

  char Word() const {
    bool any_other = false;
    for (size_t i = 0; i < letters.size(); ++i) any_other = any_other || (!Over(i) && !Waits(i));
    for (const char wanted : std::string_view("RPSQ")) {
      for (size_t i = 0; i < letters.size(); ++i) {
        if (letters[i] == wanted && !(any_other && Waits(i))) return wanted;
      }
    }
    if (letters.find('Z') != std::string_view::npos) return 'Z';
    return Ended();
  }

  char Ended() const {
    bool all = true;
    bool failed_root = false;
    bool stopped_root = false;
    for (size_t i = 0; i < letters.size(); ++i) {
      all = all && (letters[i] == '+' || (letters[i] == 'd' && Cleanup(i)));
      if (after[i]) continue;
      failed_root = failed_root || letters[i] == 'F';
      stopped_root = stopped_root || letters[i] == 'T' || letters[i] == 'd';
    }
    if (all) return '+';
    if (failed_root) return 'F';
    return stopped_root ? 'T' : '%';
  }
};

// Every way in which the steps from `index` on come after earlier ones.
void EachOrder(size_t count, std::vector<std::optional<After>>& after,
               const std::function<void(const std::vector<std::optional<After>>&)>& look) {
  if (after.size() == count) return look(after);
  after.emplace_back();
  EachOrder(count, after, look);
  for (size_t before = 0; before + 1 < after.size(); ++before) {
    for (const AfterWhen when : {AfterWhen::kSuccess, AfterWhen::kFailure, AfterWhen::kAlways}) {
      after.back() = After{static_cast<int32_t>(before), when};
      EachOrder(count, after, look);
    }
  }
  after.pop_back();
}

TEST(RollUp, EveryCombinationOfUpToFourSteps) {
  int64_t combinations = 0;
  for (size_t count = 1; count <= 4; ++count) {
    std::vector<std::optional<After>> order;
    EachOrder(count, order, [&](const std::vector<std::optional<After>>& after) {
      std::vector<size_t> at(count, 0);
      for (bool more = true; more;) {
        std::string letters;
        std::vector<Step> steps;
        for (size_t i = 0; i < count; ++i) {
          letters += kStates[at[i]];
          steps.push_back(Of(kStates[at[i]], static_cast<int32_t>(i), after[i]));
        }
        ++combinations;
        ASSERT_EQ(Letter(RollUp(steps)), (Oracle{letters, after}.Word())) << letters;
        size_t digit = 0;
        while (digit < count && ++at[digit] == kStates.size()) at[digit++] = 0;
        more = digit < count;
      }
    });
  }
  EXPECT_EQ(combinations, 9 + 81 * 4 + 729 * 28 + 6561 * 280);
}

TEST(RollUp, Words) {
  for (int word = 0; word < kRunWordCount; ++word) {
    const auto as_word = static_cast<RunWord>(word);
    EXPECT_EQ(ParseRunWord(Name(as_word)), as_word);
    EXPECT_EQ(IsTerminal(as_word), word >= static_cast<int>(RunWord::kSucceeded));
  }
  EXPECT_FALSE(ParseRunWord("DONE"));
}

}  // namespace
}  // namespace tp::core
