#include "snapshot/store.h"

#include <atomic>
#include <filesystem>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/status.h"
#include "sample.h"

namespace tp::snapshot {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
namespace fs = std::filesystem;

std::vector<std::string> Digests(const std::vector<MissingBlob>& missing) {
  std::vector<std::string> digests;
  for (const MissingBlob& blob : missing) digests.push_back(blob.sha256);
  return digests;
}

TEST_F(StoreTest, WhatIsMissingIsSentAndThenCommitted) {
  const std::vector<std::string> wanted = {Digest("one"), Digest("two")};
  EXPECT_EQ(Digests(store_->FindMissing("ana", wanted)), wanted);
  Put({"one"});
  EXPECT_THAT(Digests(store_->FindMissing("ana", wanted)), ElementsAre(Digest("two")));
  EXPECT_EQ(Commit({File("a", "one"), File("b", "two")}).status().code(), absl::StatusCode::kFailedPrecondition);
  Put({"two"});
  const auto info = Commit({File("a", "one"), File("b", "two")});
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_EQ(info->files, 2);
  EXPECT_EQ(info->bytes, 6);
  EXPECT_EQ(store_->Touch(info->id)->bytes, 6);
  EXPECT_EQ(Commit({File("a", "one"), File("b", "two")}, "ben")->id, info->id) << "the same content, the same id";
}

TEST_F(StoreTest, BytesOfSnapshotsCountEachContentOnce) {
  Put({"one", "three"});
  const std::string small = Commit({File("a", "one")})->id;
  const std::string large = Commit({File("a", "one"), File("b", "three"), File("c", "three")})->id;
  EXPECT_EQ(store_->BytesOf({small}), 3);
  EXPECT_EQ(store_->BytesOf({small, large}), 8);
  EXPECT_EQ(store_->BytesOf({small, "no such snapshot"}), 3);
  EXPECT_EQ(store_->BytesOf({}), 0);
}

TEST_F(StoreTest, AllIsThereAfterARestart) {
  Put({"one", "loose"});
  const auto info = Commit({File("a", "one")});
  Reopen();
  EXPECT_EQ(store_->Touch(info->id)->files, 1);
  EXPECT_THAT(store_->FindMissing("ana", {Digest("one"), Digest("loose")}), IsEmpty());
}

TEST_F(StoreTest, ASizeThatIsNotTheBlobsIsRefused) {
  Put({"one"});
  Entry entry = File("a", "one");
  entry.bytes = 1;
  EXPECT_THAT(std::string(Message(Commit({entry}).status())), HasSubstr("said to have 1 bytes, its content has 3"));
}

TEST_F(StoreTest, ADamagedSnapshotIsGoneAndCanBeSentAgain) {
  Put({"one", "two"});
  const auto first = Commit({File("a", "one")});
  const auto second = Commit({File("a", "two")});
  tp::testing::WriteText(dir_.At(".snapshots/manifests/" + first->id), "tp-manifest 1\ntorn");
  fs::remove(dir_.At(".snapshots/blobs/" + Digest("two").substr(0, 2) + "/" + Digest("two")));
  tp::testing::WriteText(dir_.At(".snapshots/manifests/.tmp.half"), "half");
  tp::testing::WriteText(dir_.At(".snapshots/tmp/half"), "half");
  Reopen();
  EXPECT_FALSE(store_->Touch(first->id));
  EXPECT_FALSE(store_->Touch(second->id));
  EXPECT_FALSE(fs::exists(dir_.At(".snapshots/manifests/.tmp.half")));
  EXPECT_FALSE(fs::exists(dir_.At(".snapshots/tmp/half")));
  EXPECT_TRUE(Commit({File("a", "one")}).ok());
  Put({"two"});
  EXPECT_TRUE(Commit({File("a", "two")}).ok());
}

// --- Limits ---------------------------------------------------------------------------------------

TEST_F(StoreTest, EachUserHasALimitOfReferencedBytes) {
  limits_.max_user_bytes = 100;
  Reopen();
  Put({std::string(60, 'a'), std::string(40, 'b')});
  const auto first = Commit({File("a", std::string(60, 'a')), File("again", std::string(60, 'a'))});
  ASSERT_TRUE(first.ok()) << first.status() << ": content counts once";
  Put({std::string(50, 'c')});
  const auto over = Commit({File("a", std::string(50, 'c'))}, "ana", {first->id});
  EXPECT_EQ(over.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(Message(over.status())), HasSubstr("snapshots of ana would hold 110 B, at most 100 B"));
  EXPECT_TRUE(Commit({File("b", std::string(40, 'b'))}, "ana", {first->id}).ok());
  EXPECT_TRUE(Commit({File("a", std::string(50, 'c'))}, "ben").ok()) << "another user's";
  EXPECT_TRUE(Commit({File("a", std::string(50, 'c'))}, "ana", {}).ok()) << "once the first is no longer charged";
}

TEST_F(StoreTest, UploadsThatNothingRefersToAreLimitedToo) {
  limits_.max_user_bytes = 100;
  Reopen();
  Put({std::string(80, 'a')});
  const auto upload = store_->BeginUpload("ana");
  EXPECT_EQ(upload->Begin(Digest("z"), 30, 0).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(store_->BeginUpload("ben")->Begin(Digest("z"), 30, 0).ok());
  ASSERT_TRUE(Commit({File("a", std::string(80, 'a'))}).ok());
  EXPECT_TRUE(upload->Begin(Digest("z"), 30, 0).ok());
}

TEST_F(StoreTest, ASnapshotBeyondTheLimitIsRefusedWhole) {
  limits_.max_bytes = 5;
  Reopen();
  Put({"one", "two"});
  EXPECT_THAT(std::string(Message(Commit({File("a", "one"), File("b", "two")}).status())), HasSubstr("at most 5 B"));
  EXPECT_EQ(store_->BeginUpload("ana")->Begin(Digest("x"), 6, 0).code(), absl::StatusCode::kInvalidArgument);
}

// --- Collection -----------------------------------------------------------------------------------

TEST_F(StoreTest, WhatIsNeededStaysAndTheRestGoesAfterTheGrace) {
  Put({"one", "two", "both"});
  const auto needed = Commit({File("a", "one"), File("b", "both")});
  const auto other = Commit({File("a", "two"), File("b", "both")});
  now_ += limits_.grace - absl::Seconds(1);
  EXPECT_EQ(store_->Collect({needed->id})->snapshots, 0);
  now_ += absl::Seconds(2);
  const auto collected = store_->Collect({needed->id});
  ASSERT_TRUE(collected.ok()) << collected.status();
  EXPECT_EQ(collected->snapshots, 1);
  EXPECT_EQ(collected->blobs, 1);
  EXPECT_EQ(collected->bytes, 3);
  EXPECT_TRUE(store_->Touch(needed->id));
  EXPECT_FALSE(store_->Touch(other->id));
  EXPECT_TRUE(HasBlob("one"));
  EXPECT_TRUE(HasBlob("both"));
  EXPECT_FALSE(HasBlob("two"));
  now_ += limits_.grace + absl::Seconds(1);
  EXPECT_EQ(store_->Collect({})->blobs, 2);
  EXPECT_FALSE(HasBlob("both"));
}

TEST_F(StoreTest, AnUploadUnderWayKeepsWhatItWasToldIsThere) {
  Put({"old"});
  now_ += limits_.grace + absl::Seconds(1);
  EXPECT_THAT(store_->FindMissing("ben", {Digest("old")}), IsEmpty());
  EXPECT_EQ(store_->Collect({})->blobs, 0);
  EXPECT_TRUE(Commit({File("a", "old")}, "ben").ok());
}

TEST_F(StoreTest, ASnapshotThatWasAskedForStaysUntilItsRun) {
  Put({"one"});
  const auto info = Commit({File("a", "one")});
  now_ += limits_.grace + absl::Seconds(1);
  EXPECT_TRUE(store_->Touch(info->id));
  EXPECT_EQ(store_->Collect({})->snapshots, 0);
  EXPECT_TRUE(HasBlob("one"));
}

TEST_F(StoreTest, ARestartStartsTheGraceAnew) {
  Put({"one"});
  now_ += limits_.grace + absl::Seconds(1);
  Reopen();
  EXPECT_EQ(store_->Collect({})->blobs, 0) << "someone may have been told of it just before";
  now_ += limits_.grace + absl::Seconds(1);
  EXPECT_EQ(store_->Collect({})->blobs, 1);
}

TEST_F(StoreTest, WhatWasCollectedCanBeSentAgain) {
  Put({"one"});
  const auto info = Commit({File("a", "one")});
  now_ += limits_.grace + absl::Seconds(1);
  EXPECT_EQ(store_->Collect({})->snapshots, 1);
  EXPECT_THAT(Digests(store_->FindMissing("ana", {Digest("one")})), ElementsAre(Digest("one")));
  Put({"one"});
  EXPECT_EQ(Commit({File("a", "one")})->id, info->id);
}

// Many uploads and collections at once: nothing that was committed ever lacks a blob.
TEST_F(StoreTest, CollectingWhileOthersUploadLosesNothing) {
  limits_.grace = absl::Hours(1);
  Reopen();
  std::atomic<bool> done = false;
  std::atomic<int64_t> ticks = 0;
  store_.reset();
  auto opened = Store::Open(dir_.path(), limits_, [&] { return now_ + absl::Seconds(ticks.load()); });
  ASSERT_TRUE(opened.ok());
  store_ = *std::move(opened);
  std::thread collector([&] {
    while (!done) {
      ticks += 30;
      EXPECT_TRUE(store_->Collect({}).ok());
    }
  });
  std::vector<std::thread> users;
  for (int user = 0; user < 3; ++user) {
    users.emplace_back([&, user] {
      for (int round = 0; round < 40; ++round) {
        const int64_t started = ticks;
        const std::string content = fmt::format("content {}", round % 5);
        if (!store_->FindMissing("ana", {Digest(content)}).empty()) Put({content}, fmt::format("user {}", user));
        const auto info = Commit({File("a", content), File("own", content)});
        // Within the grace a commit can't fail.
        const bool there = HasBlob(content);
        EXPECT_TRUE(info.ok() || ticks - started >= 3600) << info.status();
        EXPECT_TRUE(there || ticks - started >= 3600);
      }
    });
  }
  for (std::thread& user : users) user.join();
  done = true;
  collector.join();
  store_.reset();
}

}  // namespace
}  // namespace tp::snapshot
