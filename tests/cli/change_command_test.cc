#include <nlohmann/json.hpp>

#include "command_fixture.h"

namespace tp::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class ChangeCommandTest : public CommandTest {
 protected:
  ChangeCommandTest() {
    server_.script().runs = {MakeRun(43, "train", v1::RUN_STATE_QUEUED), MakeRun(42, "train", v1::RUN_STATE_FAILED)};
    v1::Run& run = server_.script().runs[0];
    run.set_version("0123456789abcdef");
    (*run.mutable_labels())["team"] = "vision";
    (*run.mutable_labels())["try"] = "1";
    server_.script().steer_note = "priority 10 (was 50)";
  }

  v1::UpdateRunRequest Updated() { return server_.asked().updates.at(0); }
};

TEST_F(ChangeCommandTest, ACloneSaysWhatIsToBeDifferent) {
  server_.script().notes = {"LR=0.1 replaces 0.2"};
  const Finished tp = Tp({"clone", "42", "--profile", "h200:8", "--env", "LR=0.1", "--label", "a=b", "--priority", "10",
                          "--time-limit", "2h", "--name", "second", "--", "python3", "eval.py"});
  EXPECT_EQ(tp.exit_code, 0) << tp.err;
  EXPECT_EQ(tp.out, "train-43\n");
  EXPECT_EQ(tp.err, "LR=0.1 replaces 0.2\n");
  const v1::CloneRunRequest request = server_.asked().clones.at(0);
  EXPECT_EQ(request.run(), "42");
  EXPECT_EQ(request.name(), "second");
  EXPECT_EQ(request.priority(), 10);
  EXPECT_THAT(request.argv(), ElementsAre("python3", "eval.py"));
  EXPECT_THAT(request.profiles(), ElementsAre("h200:8"));
  EXPECT_EQ(request.explicit_env().at("LR"), "0.1");
  EXPECT_EQ(request.labels().at("a"), "b");
  EXPECT_EQ(request.time_limit().seconds(), 7200);
  EXPECT_THAT(request.request_id(), SizeIs(32));
}

TEST_F(ChangeCommandTest, APlainCloneSaysNothing) {
  EXPECT_EQ(Tp({"clone", "@last"}).exit_code, 0);
  const v1::CloneRunRequest request = server_.asked().clones.at(0);
  EXPECT_EQ(request.name(), "");
  EXPECT_THAT(request.argv(), IsEmpty());
  EXPECT_FALSE(request.has_priority());
  EXPECT_FALSE(request.has_time_limit());
}

TEST_F(ChangeCommandTest, ADryCloneShowsThePlan) {
  const Finished tp = Tp({"clone", "42", "--dry-run"});
  EXPECT_EQ(tp.exit_code, 0);
  EXPECT_THAT(tp.out, HasSubstr("profile     h200:16 = 2 nodes x 8"));
  EXPECT_EQ(tp.err, "nothing was created\n");
  EXPECT_TRUE(server_.asked().clones.at(0).dry_run());
  EXPECT_THAT(server_.asked().request_ids, IsEmpty());
}

TEST_F(ChangeCommandTest, ARefusedCloneHasItsReason) {
  server_.script().failures["CloneRun"] = {{grpc::StatusCode::FAILED_PRECONDITION, "the snapshot of train-42 is gone"}};
  const Finished tp = Tp({"clone", "42"});
  EXPECT_EQ(tp.exit_code, 9);
  EXPECT_EQ(tp.err, "tp: the snapshot of train-42 is gone\n");
}

TEST_F(ChangeCommandTest, AnUpdateNamesItsFields) {
  const Finished tp = Tp({"update", "43", "--priority", "10", "--profile", "h200:8", "--time-limit", "none", "--name",
                          "other", "--hold", "--step", "1"});
  EXPECT_EQ(tp.exit_code, 0) << tp.err;
  EXPECT_EQ(tp.out, "train-43\n");
  EXPECT_EQ(tp.err, "train-43: priority 10 (was 50)\n");
  const v1::UpdateRunRequest request = Updated();
  EXPECT_THAT(request.update_mask().paths(), ElementsAre("profiles", "time_limit", "name", "priority", "hold"));
  EXPECT_EQ(request.priority(), 10);
  EXPECT_FALSE(request.has_time_limit());
  EXPECT_EQ(request.step(), 1);
  EXPECT_EQ(request.expected_version(), "");
}

TEST_F(ChangeCommandTest, LabelsAreSetAndRemovedOverWhatTheRunHas) {
  EXPECT_EQ(Tp({"update", "43", "--label", "team=audio", "--label", "try-", "--label", "new=x"}).exit_code, 0);
  const v1::UpdateRunRequest request = Updated();
  EXPECT_THAT(request.update_mask().paths(), ElementsAre("labels"));
  EXPECT_EQ(request.labels().at("team"), "audio");
  EXPECT_EQ(request.labels().at("new"), "x");
  EXPECT_EQ(request.labels().count("try"), 0U);
  EXPECT_EQ(request.expected_version(), "0123456789abcdef") << "a change in between must not be undone";
}

TEST_F(ChangeCommandTest, AnotherVersionIsAConflict) {
  server_.script().failures["UpdateRun"] = {{grpc::StatusCode::ABORTED, "train-43 was changed by somebody else"}};
  EXPECT_EQ(Tp({"update", "43", "--hold", "--if-version", "x"}).exit_code, 9);
  EXPECT_EQ(Updated().expected_version(), "x");
}

TEST_F(ChangeCommandTest, NothingToChangeIsAMistake) {
  EXPECT_EQ(Tp({"update", "43"}).exit_code, 2);
  EXPECT_EQ(Tp({"update", "43", "--hold", "--release"}).exit_code, 2);
  EXPECT_EQ(Tp({"update", "43", "--label", "x"}).exit_code, 2);
  EXPECT_THAT(server_.asked().updates, IsEmpty());
}

TEST_F(ChangeCommandTest, AJsonUpdateHasTheRun) {
  const auto document = nlohmann::json::parse(Tp({"update", "43", "--hold", "-o", "json"}).out);
  EXPECT_EQ(document["run"]["id"], "train-43");
  EXPECT_EQ(document["note"], "priority 10 (was 50)");
}

TEST_F(ChangeCommandTest, ATombstoneSaysSo) {
  server_.script().runs[1].mutable_removed_at()->set_seconds(1'796'025'612);
  const Finished tp = Tp({"show", "42"});
  EXPECT_THAT(tp.out, HasSubstr("removed     2026-11-30T08:00:12.000Z ("));
  EXPECT_THAT(tp.out, HasSubstr("its files are gone; usage and events stay\n"));
  EXPECT_THAT(tp.out, testing::Not(HasSubstr("files       ")));
  EXPECT_THAT(Tp({"ls", "--removed"}).out, HasSubstr("FAILED (removed)"));
  EXPECT_TRUE(server_.asked().lists.back().show_removed());
}

}  // namespace
}  // namespace tp::cli
