#include "tpd/storage_scan.h"

#include <deque>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/status.h"
#include "core/quota_use.h"
#include "tests/launch/temp_dir.h"

namespace tp::tpd {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const absl::Time kNow = absl::FromUnixSeconds(1'767'225'600);

class StorageScanTest : public ::testing::Test {
 protected:
  StorageScanOptions Options() {
    StorageScanOptions options;
    options.interval = absl::Milliseconds(1);
    options.now = [] { return kNow; };
    options.owners = [this] { return owners_; };
    options.snapshot_bytes = [this](const std::string& owner) -> absl::StatusOr<int64_t> {
      if (owner == broken_) return Unavailable("input/output error");
      return owner == "ana" ? 1'000'000'000 : 0;
    };
    options.found = [this](loop::StorageScanned scanned) {
      const std::lock_guard lock(mutex_);
      for (store::StorageUseRow& row : scanned.use) found_.push_back(std::move(row));
      found_changed_.notify_all();
    };
    return options;
  }

  void Start(std::set<std::string> measured = {}) { Start(std::move(measured), Options()); }

  void Start(std::set<std::string> measured, StorageScanOptions options) {
    auto root = OpenDirectory(directory_.path());
    ASSERT_TRUE(root.ok()) << root.status();
    scan_ = std::make_unique<StorageScan>(*std::move(root), std::move(measured), std::move(options));
  }

  store::StorageUseRow Next() {
    std::unique_lock lock(mutex_);
    found_changed_.wait(lock, [this] { return !found_.empty(); });
    store::StorageUseRow row = found_.front();
    found_.pop_front();
    return row;
  }

  // The owners of the next rows, up to and with the end of a round.
  std::vector<std::string> OwnersOfRound() {
    std::vector<std::string> owners;
    do {
      owners.push_back(Next().owner);
    } while (owners.back() != core::kEverybody);
    return owners;
  }

  const testing::TempDir directory_;
  absl::StatusOr<std::vector<std::string>> owners_ = std::vector<std::string>{"ana", "ben"};
  std::string broken_;
  std::mutex mutex_;
  std::condition_variable found_changed_;
  std::deque<store::StorageUseRow> found_;
  std::unique_ptr<StorageScan> scan_;  // ends before what it uses
};

TEST_F(StorageScanTest, ARowForEachOwnerThenForEverybodyElse) {
  testing::WriteText(directory_.At("ben/run/output/model"), std::string(1 << 20, 'x'));
  testing::WriteText(directory_.At("nobody/run/output/model"), "x");
  Start();
  const store::StorageUseRow ana = Next();
  EXPECT_EQ(ana, (store::StorageUseRow{"ana", {1'000'000'000, kNow}}));
  const store::StorageUseRow ben = Next();
  EXPECT_EQ(ben.owner, "ben");
  EXPECT_GT(ben.use.bytes, 0);
  EXPECT_LT(ben.use.bytes, 2 << 20);
  EXPECT_EQ(Next(), (store::StorageUseRow{core::kEverybody, {0, kNow}}));
}

TEST_F(StorageScanTest, GoesOnForEver) {
  Start();
  for (int round = 0; round < 3; ++round) EXPECT_THAT(OwnersOfRound(), ElementsAre("ana", "ben", core::kEverybody));
}

TEST_F(StorageScanTest, WhoLeftNothingGetsANewFigure) {
  Start({"gone", core::kEverybody});
  EXPECT_THAT(OwnersOfRound(), ElementsAre("ana", "ben", "gone", core::kEverybody));
}

TEST_F(StorageScanTest, WhoCannotBeMeasuredKeepsTheLastFigure) {
  broken_ = "ben";
  Start({"ben"});
  EXPECT_THAT(OwnersOfRound(), ElementsAre("ana", core::kEverybody));
}

TEST_F(StorageScanTest, NoRoundIsCompleteWithoutAnyFigureOfAnOwner) {
  broken_ = "ana";
  Start();
  for (int round = 0; round < 3; ++round) EXPECT_EQ(Next().owner, "ben");
}

TEST_F(StorageScanTest, WithoutOwnersNothingIsFoundAndTheNextRoundTries) {
  StorageScanOptions options = Options();
  int rounds = 0;
  options.owners = [this, &rounds]() -> absl::StatusOr<std::vector<std::string>> {
    if (++rounds < 3) return Unavailable("the database is busy");
    return owners_;
  };
  Start({}, std::move(options));
  EXPECT_THAT(OwnersOfRound(), ElementsAre("ana", "ben", core::kEverybody));
  scan_.reset();
  EXPECT_GE(rounds, 3);
}

TEST_F(StorageScanTest, EndsWhileItWaitsForTheNextRound) {
  StorageScanOptions options = Options();
  options.interval = absl::Hours(1);
  Start({}, std::move(options));
  OwnersOfRound();
  scan_.reset();
  EXPECT_THAT(found_, IsEmpty());
}

}  // namespace
}  // namespace tp::tpd
