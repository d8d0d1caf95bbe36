// What people are told, and who lifts what.
#include "harness.h"

namespace tp::loop::test {
namespace {

using enum core::JobState;

TEST(Answers, SubmitSaysWhatWasReplaced) {
  Harness h;
  auto registry = std::make_shared<core::Registry>(*OneSeries());
  registry->series["h200"].env["NCCL_DEBUG"] = "WARN";
  registry->profiles["h200"].shapes[16] = {};
  h.loop->Post(std::shared_ptr<const core::Registry>(registry));
  SubmitRun job = Harness::Job();
  job.steps[0].explicit_env["NCCL_DEBUG"] = "INFO";
  const auto answer = h.Do(job, "same");
  ASSERT_TRUE(answer.ok());
  EXPECT_NE(answer->note.find("NCCL_DEBUG"), std::string::npos) << answer->note;
  EXPECT_NE(answer->note.find("base overrides"), std::string::npos) << answer->note;
  EXPECT_EQ(h.Do(job, "same")->note, answer->note);
  EXPECT_EQ(h.Preview(job)->note, answer->note);
}

TEST(Answers, StopOfWhatIsStoppedSaysSo) {
  Harness h;
  h.Submit("h200:16");
  const int64_t run = h.Submit("h200:16");
  ASSERT_TRUE(h.Do(StopRun{h.store->GetRun(run).value()}).ok());
  const auto again = h.Do(StopRun{h.store->GetRun(run).value()});
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->note, "it is stopped already");
}

TEST(Answers, AnAdminLiftsAnyPauseOfTheirOwnRunToo) {
  Harness h;
  h.Submit("h200:16");
  const int64_t run = h.Submit("h200:16");
  ASSERT_TRUE(h.Do(PauseRun{h.store->GetRun(run).value()}, "", {"olga", store::Role::kAdmin}).ok());
  ASSERT_TRUE(h.Do(ResumeRun{h.store->GetRun(run).value()}).ok());
  EXPECT_EQ(h.State(run), kPaused);
  ASSERT_TRUE(h.Do(ResumeRun{h.store->GetRun(run).value()}, "", {"ada", store::Role::kAdmin}).ok());
  EXPECT_EQ(h.State(run), kQueued);
}

Command StopOf(const Harness& h, int64_t run, const std::string& request_id) {
  return {{"ada", store::Role::kUser}, request_id, "SteerRuns", "sha", StopRun{h.store->GetRun(run).value()}};
}

TEST(Answers, ManyAtOnceAreOneCommitAndEachIsAnsweredByItself) {
  Harness h;
  std::vector<int64_t> runs;
  for (int i = 0; i < 3; ++i) runs.push_back(h.Submit("h200:16"));
  std::vector<Command> stops;
  for (const int64_t run : runs) stops.push_back(StopOf(h, run, "bulk/" + std::to_string(run)));
  stops[1].who = {"eve", store::Role::kUser};
  const int64_t revision = h.store->ReadMeta()->revision;
  const auto answers = h.DoTogether(stops);
  ASSERT_EQ(answers.size(), 3U);
  EXPECT_TRUE(answers[0].ok());
  EXPECT_EQ(answers[1].status().code(), absl::StatusCode::kPermissionDenied);
  EXPECT_TRUE(answers[2].ok());
  EXPECT_FALSE(answers[2]->live.has_value());
  EXPECT_EQ(h.store->ReadMeta()->revision, revision + 1);
  EXPECT_EQ(h.State(runs[2]), kStopped);
  EXPECT_NE(h.State(runs[1]), kStopped);
}

TEST(Answers, ManyAtOnceRepeatedAreAnsweredAsBefore) {
  Harness h;
  h.Submit("h200:16");
  const int64_t run = h.Submit("h200:16");
  const std::vector<Command> stops = {StopOf(h, run, "bulk/0"), StopOf(h, run, "bulk/0")};
  const auto first = h.DoTogether(stops);
  ASSERT_TRUE(first[0].ok());
  EXPECT_EQ(first[1]->note, first[0]->note) << "the same id twice in one call";
  const int64_t revision = h.store->ReadMeta()->revision;
  EXPECT_EQ(h.DoTogether(stops)[0]->note, first[0]->note);
  EXPECT_EQ(h.store->ReadMeta()->revision, revision) << "nothing was to be committed";
}

}  // namespace
}  // namespace tp::loop::test
