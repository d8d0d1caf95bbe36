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

}  // namespace
}  // namespace tp::loop::test
