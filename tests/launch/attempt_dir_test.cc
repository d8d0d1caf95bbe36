#include "launch/attempt_dir.h"

#include <sys/stat.h>

#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "launch/record.h"
#include "tests/launch/temp_dir.h"
#include "tests/snapshot/sample.h"

namespace tp::launch {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::tp::testing::ReadText;
using ::tp::testing::TempDir;
using ::tp::testing::WriteText;
namespace fs = std::filesystem;

class AttemptDirTest : public ::testing::Test {
 protected:
  AttemptDirTest() {
    spec_.snapshot_id = StoreSnapshot();
    spec_.key = "tp-lab-e1-7-s0-a1";
    spec_.nonce = "n1";
    spec_.run_id = "train-7";
    const std::string run = dir_.At("ada/train-7");
    spec_.paths = {attempt(), attempt() + "/work", run + "/output", run + "/results/train"};
    spec_.argv = {"python3", "train.py"};
    RankLaunch rank;
    rank.env = {{"TP_RUN_ID", "train-7"}, {"WANDB_API_KEY", "hunter2"}};
    spec_.ranks = {rank};
    spec_.overrides_json = {R"({"trl":{"lr":1}})", "{}"};
  }

  std::string attempt() const { return dir_.At("ada/train-7/attempts/train-1"); }
  std::string InAttempt(const std::string& name) const { return attempt() + "/" + name; }
  absl::Status Prepare() { return PrepareAttempt(spec_, dir_.path()); }
  std::string StoreSnapshot() const {
    const auto store = *snapshot::Store::Open(dir_.path(), {}, absl::Now);
    const auto upload = store->BeginUpload("ada");
    EXPECT_TRUE(upload->Begin(snapshot::Digest("print(1)\n"), 9, 0).ok());
    EXPECT_TRUE(upload->Append("print(1)\n").ok());
    EXPECT_TRUE(upload->Finish().ok());
    return store->Commit("ada", *snapshot::Manifest::Make({snapshot::File("train.py", "print(1)\n")}), {})->id;
  }
  AttemptTarget Target() const { return {spec_.key, spec_.nonce, attempt(), {1}}; }
  FenceResult Fence() const { return FenceAttempt(Target(), dir_.path()); }

  TempDir dir_;
  LaunchSpec spec_;
};

TEST_F(AttemptDirTest, PreparesEverythingARankNeeds) {
  ASSERT_TRUE(Prepare().ok());
  EXPECT_EQ(ReadText(InAttempt("work/train.py")), "print(1)\n");
  EXPECT_EQ(ReadText(InAttempt("fence")), "open\n");
  EXPECT_EQ(ReadText(InAttempt("overrides.json")), R"({"trl":{"lr":1}})");
  EXPECT_EQ(ReadText(InAttempt("overrides-1.json")), "{}");
  EXPECT_TRUE(fs::is_directory(spec_.paths.output_dir));
  EXPECT_TRUE(fs::is_directory(spec_.paths.results_dir));
}

TEST_F(AttemptDirTest, OnlyOwnerAndGroupSeeTheDirectories) {
  ASSERT_TRUE(Prepare().ok());
  for (const std::string& path : {dir_.At("ada"), dir_.At("ada/train-7"), attempt(), spec_.paths.output_dir}) {
    struct stat about {};
    ASSERT_EQ(stat(path.c_str(), &about), 0);
    EXPECT_EQ(about.st_mode & 07777, 02770u) << path;
  }
}

TEST_F(AttemptDirTest, SpecJsonHoldsNoSecrets) {
  ASSERT_TRUE(Prepare().ok());
  const std::string json = ReadText(InAttempt("spec.json"));
  EXPECT_THAT(json, HasSubstr(R"("WANDB_API_KEY": "***")"));
  EXPECT_THAT(json, HasSubstr(R"("TP_RUN_ID": "train-7")"));
  EXPECT_THAT(json, Not(HasSubstr("hunter2")));
}

TEST_F(AttemptDirTest, SpecJsonTakesAnyBytes) {
  spec_.argv = {"echo", "\xff\n\"'"};
  ASSERT_TRUE(Prepare().ok());
  EXPECT_THAT(ReadText(InAttempt("spec.json")), HasSubstr("echo"));
}

TEST_F(AttemptDirTest, PreparingAgainKeepsAClosedFenceAndTheWork) {
  ASSERT_TRUE(Prepare().ok());
  WriteText(InAttempt("work/train.py"), "changed by the job");
  ASSERT_TRUE(CloseFence(attempt()).ok());
  ASSERT_TRUE(Prepare().ok());
  EXPECT_EQ(ReadText(InAttempt("fence")), "closed\n");
  EXPECT_EQ(ReadText(InAttempt("work/train.py")), "changed by the job");
}

TEST_F(AttemptDirTest, ConcurrentLaunchesShareOneWork) {
  std::vector<std::thread> launches;
  std::array<absl::Status, 4> results;
  for (absl::Status& result : results) launches.emplace_back([this, &result] { result = Prepare(); });
  for (std::thread& launch : launches) launch.join();
  for (const absl::Status& result : results) EXPECT_TRUE(result.ok()) << result;
  EXPECT_EQ(ReadText(InAttempt("work/train.py")), "print(1)\n");
  for (const auto& entry : fs::directory_iterator(attempt())) {
    EXPECT_FALSE(entry.path().filename().string().starts_with(".")) << entry.path();
  }
}

TEST_F(AttemptDirTest, AGoneSnapshotSaysSo) {
  fs::remove(dir_.At(".snapshots/manifests/" + spec_.snapshot_id));
  const absl::Status status = Prepare();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(Message(status)), HasSubstr("submit again"));
  EXPECT_FALSE(fs::exists(InAttempt("work")));
}

TEST_F(AttemptDirTest, RefusesPathsOutsideOfStorage) {
  spec_.paths.output_dir = "/elsewhere/output";
  EXPECT_EQ(Prepare().code(), absl::StatusCode::kInvalidArgument);
  spec_.paths.output_dir = dir_.path() + "/../elsewhere";
  EXPECT_EQ(Prepare().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(AttemptDirTest, FollowsNoLinkOutOfStorage) {
  fs::create_directories(dir_.At("outside"));
  fs::create_directories(dir_.At("ada"));
  fs::create_directory_symlink(dir_.At("outside"), dir_.At("ada/train-7"));
  EXPECT_FALSE(Prepare().ok());
  EXPECT_TRUE(fs::is_empty(dir_.At("outside")));
}

TEST_F(AttemptDirTest, FencingAnUnclaimedAttemptWinsAndStaysWon) {
  EXPECT_TRUE(std::holds_alternative<FenceWon>(Fence()));  // even where nothing was ever prepared
  const auto claim = ParseAttemptClaim(ReadText(InAttempt("attempt.claim")), spec_.key);
  ASSERT_TRUE(claim);
  EXPECT_TRUE(claim->fenced);
  EXPECT_TRUE(std::holds_alternative<FenceWon>(Fence()));
}

TEST_F(AttemptDirTest, FencingAClaimedAttemptNamesTheOwner) {
  WriteText(InAttempt("attempt.claim"), "tp-record 1\nkey=" + spec_.key + "\nnonce=n9\nowner=launch\nend\n");
  const FenceResult result = Fence();
  ASSERT_TRUE(std::holds_alternative<FenceLost>(result));
  EXPECT_EQ(std::get<FenceLost>(result).owner_nonce, "n9");
}

TEST_F(AttemptDirTest, AnUnreadableClaimIsNeitherWonNorLost) {
  WriteText(InAttempt("attempt.claim"), "tp-rec");
  EXPECT_TRUE(std::holds_alternative<FenceFailed>(Fence()));
}

TEST_F(AttemptDirTest, OneOfManyFencesAndClaimsWins) {
  fs::create_directories(attempt());
  std::vector<std::thread> racers;
  std::array<FenceResult, 8> results;
  for (FenceResult& result : results) racers.emplace_back([this, &result] { result = Fence(); });
  for (std::thread& racer : racers) racer.join();
  for (const FenceResult& result : results) EXPECT_TRUE(std::holds_alternative<FenceWon>(result));
}

TEST_F(AttemptDirTest, PauseIsAnnouncedOnceAndForAll) {
  ASSERT_TRUE(Prepare().ok());
  EXPECT_TRUE(AnnouncePause(attempt()).ok());
  EXPECT_TRUE(AnnouncePause(attempt()).ok());
  EXPECT_TRUE(fs::exists(InAttempt("pause")));
}

TEST_F(AttemptDirTest, ProbeAcceptsALocalDiskAndCleansUp) {
  EXPECT_TRUE(ProbeStorage(dir_.path()).ok());
  for (const auto& entry : fs::directory_iterator(dir_.path())) {
    EXPECT_FALSE(entry.path().filename().string().starts_with(".probe"));
  }
  EXPECT_EQ(ProbeStorage(dir_.At("none")).code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace tp::launch
