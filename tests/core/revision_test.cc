// tp update: what may be changed, when, and by whom.
#include "core/revision.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sample_registry.h"

namespace tp::core {
namespace {

using absl::StatusCode;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

using Flags = std::vector<std::string>;
using Labels = std::map<std::string, std::string>;
using Limit = std::optional<absl::Duration>;

constexpr Reviser kAsOwner = {.is_owner = true, .is_operator = false};
constexpr Reviser kOperator = {.is_owner = false, .is_operator = true};

class RevisionTest : public testing::Test {
 protected:
  RevisionTest() {
    AddSampleExecutor(registry_, "gpu", "default", "local");
    AddSampleExecutor(registry_, "cpu", "default", "local");
    AddSampleSeries(registry_, "h200", 8, 2, "gpu/default");
    run_.run.n = 7;
    run_.run.slug = "train";
    run_.run.owner = "ana";
    run_.run.labels = {{"team", "vision"}};
    Step step;
    step.ref = {7, 0};
    step.spec.name = "main";
    step.spec.argv = {"true"};
    step.spec.profiles = {"h200:8"};
    run_.steps = {step};
  }

  std::vector<std::string> Done(const Revision& revision, const Reviser& by = kAsOwner) {
    const auto done = Revise(run_, revision, by, registry_);
    EXPECT_TRUE(done.ok()) << done.status();
    return done.ok() ? *done : std::vector<std::string>();
  }
  absl::Status Refused(const Revision& revision, const Reviser& by = kAsOwner) {
    const RunWithSteps before = run_;
    const absl::Status status = Revise(run_, revision, by, registry_).status();
    EXPECT_EQ(run_, before) << "a refused revision changes nothing";
    return status;
  }
  Step& step() { return run_.steps.front(); }

  Registry registry_;
  RunWithSteps run_;
};

TEST_F(RevisionTest, HardwareOfAStepThatWaits) {
  for (const JobState state : {JobState::kQueued, JobState::kPaused, JobState::kFailed, JobState::kStopped}) {
    step().state = state;
    step().spec.profiles = {"h200:8"};
    step().hold.shape = "h200:12 is no multiple of 8";
    EXPECT_THAT(Done({.profiles = Flags{"h200:16"}}), ElementsAre("profile h200:16 (was h200:8)"));
    EXPECT_THAT(step().spec.profiles, ElementsAre("h200:16"));
    EXPECT_EQ(step().hold.shape, "") << "the new shape resolves";
  }
}

TEST_F(RevisionTest, HardwareIsFrozenInALiveAttempt) {
  step().state = JobState::kRunning;
  step().attempt.emplace();
  EXPECT_THAT(Refused({.profiles = Flags{"h200:16"}}).ToString(), HasSubstr("train-7 is RUNNING"));
  EXPECT_THAT(Done({.profiles = Flags{"h200:8"}}), IsEmpty()) << "nothing changes";
  step().attempt.reset();
  step().state = JobState::kSucceeded;
  EXPECT_THAT(Refused({.profiles = Flags{"h200:16"}}).ToString(), HasSubstr("tp clone"));
}

TEST_F(RevisionTest, AnImpossibleShapeIsRefused) {
  EXPECT_EQ(Refused({.profiles = Flags{"h200:12"}}).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(Refused({.profiles = Flags{"h2000"}}).code(), StatusCode::kInvalidArgument);
}

TEST_F(RevisionTest, OwnersLowerThePriorityOperatorsRaiseIt) {
  EXPECT_THAT(Done({.priority = 30}), ElementsAre("priority 30 (was 50)"));
  EXPECT_THAT(Done({.priority = 50}), ElementsAre("priority 50 (was 30)")) << "back to the default";
  EXPECT_EQ(Refused({.priority = 51}).code(), StatusCode::kPermissionDenied);
  EXPECT_EQ(Refused({.priority = 101}, kOperator).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(Refused({.priority = -1}).code(), StatusCode::kInvalidArgument);
  Done({.priority = 80}, kOperator);
  EXPECT_THAT(Done({.priority = 70}), ElementsAre("priority 70 (was 80)"));
}

TEST_F(RevisionTest, HoldsHaveTheirHolders) {
  EXPECT_THAT(Done({.hold = true}), ElementsAre("held: it starts after tp release"));
  EXPECT_EQ(step().hold, (Hold{.owner = true, .admin = false, .shape = ""}));
  EXPECT_THAT(Done({.hold = true}), IsEmpty());
  Done({.hold = true}, kOperator);
  EXPECT_THAT(Done({.hold = false}), ElementsAre("released", "an admin holds it still"));
  EXPECT_EQ(step().hold, (Hold{.owner = false, .admin = true, .shape = ""}));
  EXPECT_THAT(Done({.hold = false}, kOperator), ElementsAre("released"));
  EXPECT_FALSE(step().hold.any());
  step().state = JobState::kSucceeded;
  EXPECT_EQ(Refused({.hold = true}).code(), StatusCode::kFailedPrecondition);
}

TEST_F(RevisionTest, ANameIsChangedBeforeTheFirstLaunch) {
  EXPECT_THAT(Done({.name = "Big Run"}), ElementsAre("train-7 is now big-run-7"));
  EXPECT_THAT(Done({.name = "big-run"}), IsEmpty());
  step().attempts = 1;
  EXPECT_THAT(Refused({.name = "other"}).ToString(), HasSubstr("can't be renamed"));
}

TEST_F(RevisionTest, LabelsAreReplacedAlsoWhenItIsOver) {
  step().state = JobState::kSucceeded;
  EXPECT_THAT(Done({.labels = Labels{{"a", "1"}, {"b", "2"}}}), ElementsAre("labels a=1 b=2"));
  EXPECT_THAT(Done({.labels = Labels()}), ElementsAre("no labels"));
}

TEST_F(RevisionTest, TimeLimits) {
  EXPECT_THAT(Done({.time_limit = Limit(absl::Hours(2))}), ElementsAre("time limit 2h"));
  EXPECT_THAT(Done({.time_limit = Limit()}), ElementsAre("no time limit"));
}

TEST_F(RevisionTest, AStepOfSeveralIsNamed) {
  run_.steps.push_back(step());
  run_.steps[1].ref = {7, 1};
  EXPECT_EQ(Refused({.profiles = Flags{"h200:16"}}).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(Refused({.step = 2, .profiles = Flags{"h200:16"}}).code(), StatusCode::kNotFound);
  Done({.step = 1, .profiles = Flags{"h200:16"}});
  EXPECT_THAT(run_.steps[0].spec.profiles, ElementsAre("h200:8"));
  EXPECT_THAT(run_.steps[1].spec.profiles, ElementsAre("h200:16"));
}

TEST_F(RevisionTest, ATombstoneStaysAsItIs) {
  run_.run.removed_at = absl::FromUnixSeconds(1'800'000'000);
  EXPECT_THAT(Refused({.labels = Labels()}).ToString(), HasSubstr("train-7 was removed on 2027-01-15 08:00 UTC"));
}

TEST_F(RevisionTest, AllOrNothing) {
  EXPECT_FALSE(Refused({.labels = Labels{{"x", "y"}}, .priority = 99}).ok());
  EXPECT_EQ(run_.run.labels.at("team"), "vision");
}

TEST_F(RevisionTest, TheVersionFollowsWhatCanBeChanged) {
  std::vector<std::string> versions = {VersionOf(run_)};
  const auto expect_another = [&] {
    const std::string version = VersionOf(run_);
    EXPECT_EQ(version.size(), 16U);
    EXPECT_THAT(versions, testing::Not(testing::Contains(version)));
    versions.push_back(version);
  };
  Done({.priority = 40});
  expect_another();
  Done({.labels = Labels{{"team", "audio"}}});
  expect_another();
  Done({.hold = true});
  expect_another();
  Done({.profiles = Flags{"h200:16"}});
  expect_another();
  Done({.time_limit = Limit(absl::Hours(1))});
  expect_another();
  Done({.name = "other"});
  expect_another();
  run_.run.removed_at = absl::UnixEpoch();
  expect_another();
  step().state = JobState::kRunning;
  step().retry_count = 3;
  EXPECT_EQ(VersionOf(run_), versions.back()) << "a state is no version";
}

}  // namespace
}  // namespace tp::core
