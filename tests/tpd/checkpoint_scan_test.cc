#include "tpd/checkpoint_scan.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <condition_variable>
#include <deque>
#include <filesystem>
#include <mutex>

#include <gtest/gtest.h>

#include "tests/launch/temp_dir.h"

namespace tp::tpd {
namespace {

namespace fs = std::filesystem;
using ::tp::testing::WriteText;

const absl::Time kScannedAt = absl::FromUnixSeconds(1'767'225'600);

class CheckpointScanTest : public ::testing::Test {
 protected:
  CheckpointScanTest() {
    run_.run.n = 7;
    run_.run.slug = "train";
    run_.run.owner = "ana";
    core::Step& step = run_.steps.emplace_back();
    step.ref = {7, 0};
    step.spec.name = "main";
    step.state = core::JobState::kRunning;
    step.attempts = 2;
    step.attempt.emplace().meter.emplace();
    layout_.storage_root = directory_.path();
    output_ = core::RunDirectoryOf(layout_, run_.run) + "/output";
    fs::create_directories(output_);
  }

  void Write(const std::string& path, absl::Duration before_now) {
    fs::create_directories(fs::path(output_ + "/" + path).parent_path());
    WriteText(output_ + "/" + path, "x");
    const timespec at = absl::ToTimespec(kScannedAt - before_now);
    const timespec times[] = {at, at};
    ASSERT_EQ(utimensat(AT_FDCWD, (output_ + "/" + path).c_str(), times, 0), 0);
  }

  // What one round sees of the step.
  std::vector<core::CheckpointSight> Scan() {
    CheckpointScanOptions options;
    options.interval = absl::Hours(1);
    options.layout = layout_;
    options.now = [] { return kScannedAt; };
    options.runs = [this]() -> absl::StatusOr<std::vector<core::RunWithSteps>> { return std::vector{run_}; };
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<loop::CheckpointsSeen> rounds;
    options.found = [&](loop::CheckpointsSeen seen) {
      const std::lock_guard lock(mutex);
      rounds.push_back(std::move(seen));
      changed.notify_all();
    };
    CheckpointScan scan(std::move(options));
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return !rounds.empty(); });
    std::vector<core::CheckpointSight> sights;
    for (auto& [ref, sight] : rounds.front().seen) sights.push_back(sight);
    return sights;
  }

  testing::TempDir directory_;
  core::LaunchLayout layout_;
  core::RunWithSteps run_;
  std::string output_;
};

TEST_F(CheckpointScanTest, TheNewestThatLooksLikeOne) {
  Write("step-1.ckpt", absl::Hours(3));
  Write("checkpoint-2/model.safetensors", absl::Hours(2));
  Write("log.txt", absl::Hours(1));
  Write("step-3.ckpt.tmp", absl::Minutes(1));
  const auto sights = Scan();
  ASSERT_EQ(sights.size(), 1U);
  EXPECT_EQ(sights[0].attempt, 2);
  EXPECT_FALSE(sights[0].after_end);
  EXPECT_EQ(sights[0].looked_at, kScannedAt);
  ASSERT_TRUE(sights[0].newest);
  EXPECT_EQ(sights[0].newest->path, "checkpoint-2/model.safetensors");
  EXPECT_EQ(sights[0].newest->written_at, kScannedAt - absl::Hours(2));
}

TEST_F(CheckpointScanTest, AFileOfTheFutureHidesNothing) {
  Write("step-1.ckpt", absl::Hours(1));
  Write("step-2.ckpt", -absl::Hours(1));
  EXPECT_EQ(Scan().at(0).newest->path, "step-1.ckpt");
}

TEST_F(CheckpointScanTest, NoOutputNoCheckpoint) {
  EXPECT_FALSE(Scan().at(0).newest);
  fs::remove_all(output_);
  EXPECT_FALSE(Scan().at(0).newest);
  fs::create_symlink("/etc", output_);
  EXPECT_FALSE(Scan().at(0).newest);
}

TEST_F(CheckpointScanTest, ANameThatSteersATerminalIsWrittenOut) {
  Write("step-\x1b[2J\xff.ckpt", absl::Hours(1));
  EXPECT_EQ(Scan().at(0).newest->path, "step-\\x1b[2J\\xff.ckpt");
}

TEST_F(CheckpointScanTest, OfAPausedStepItSaysThatItsAttemptHasEnded) {
  run_.steps[0].attempt.reset();
  run_.steps[0].state = core::JobState::kPaused;
  run_.steps[0].past.emplace_back().number = 2;
  EXPECT_TRUE(Scan().at(0).after_end);
}

TEST(CheckpointInMetrics, ALineWithNameAndTime) {
  const auto checkpoint = CheckpointInMetrics(
      "{\"step\": 1}\nnoise\n{\"checkpoint\": \"s3://b/step-5\", \"time\": 1767225600.5}\n"
      "{\"checkpoint\": 7, \"time\": 1767225700}\n{\"checkpoint\": \"torn\", \"time\": 1767225800}",
      kScannedAt + absl::Hours(1));
  ASSERT_TRUE(checkpoint);
  EXPECT_EQ(checkpoint->path, "s3://b/step-5");
  EXPECT_EQ(checkpoint->written_at, kScannedAt + absl::Milliseconds(500));
}

TEST(CheckpointInMetrics, ATimeThatIsNoneHidesNothing) {
  const auto checkpoint = CheckpointInMetrics(
      "{\"checkpoint\": \"a\", \"time\": 1767225600}\n{\"checkpoint\": \"b\", \"time\": 1e300}\n"
      "{\"checkpoint\": \"c\", \"time\": -1e300}\n{\"checkpoint\": \"d\", \"time\": 1767229200}\n",
      kScannedAt + absl::Minutes(1));
  ASSERT_TRUE(checkpoint);
  EXPECT_EQ(checkpoint->path, "a");
}

}  // namespace
}  // namespace tp::tpd
