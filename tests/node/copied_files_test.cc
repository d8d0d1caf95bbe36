// Trees of files as copies make, bring and merge them; rsync runs against this machine itself, under a shell that takes
// the place of ssh.
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <thread>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/time/clock.h"
#include "backends/node/copied/rsync_copier.h"
#include "backends/node/copied/trees.h"
#include "base/random.h"
#include "tests/launch/temp_dir.h"

namespace tp::node {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::tp::testing::ReadText;
using ::tp::testing::TempDir;
using ::tp::testing::WriteText;
namespace fs = std::filesystem;

const std::function<bool()> kGoOn = [] { return false; };

// Every file and link beneath: content, or where it points.
std::map<std::string, std::string> FilesIn(const std::string& path) {
  std::map<std::string, std::string> tree;
  if (!fs::exists(path)) return tree;
  for (const auto& entry : fs::recursive_directory_iterator(path)) {
    const std::string name = entry.path().string().substr(path.size() + 1);
    if (entry.is_symlink()) {
      tree[name] = "-> " + fs::read_symlink(entry.path()).string();
    } else if (entry.is_regular_file()) {
      tree[name] = ReadText(entry.path().string());
    }
  }
  return tree;
}

class Trees : public ::testing::Test {
 protected:
  std::string Output() const { return dir_.At("output"); }
  void Began() {
    fs::remove_all(dir_.At("base"));
    ASSERT_TRUE(LinkTree(Output(), dir_.At("base"), kGoOn).ok());
  }
  // What a rank has changed, then merged.
  void Changed(const std::map<std::string, std::string>& files, bool first) {
    fs::remove_all(dir_.At("from"));
    fs::create_directories(dir_.At("from"));
    for (const auto& [name, content] : files) {
      if (content.starts_with("-> ")) {
        fs::create_directories(fs::path(dir_.At("from/" + name)).parent_path());
        fs::create_symlink("/rsyncd-munged/" + content.substr(3), dir_.At("from/" + name));
      } else {
        WriteText(dir_.At("from/" + name), content);
      }
    }
    const absl::Status merged = MergeTree(
        {.from = dir_.At("from"), .into = Output(), .base = dir_.At("base"), .of_rank = ".rank-0-1", .first = first},
        kGoOn);
    ASSERT_TRUE(merged.ok()) << merged;
  }

  TempDir dir_;
};

using Files = std::map<std::string, std::string>;

TEST_F(Trees, TheFirstRanksFilesWinAndOthersAreKeptBesides) {
  WriteText(Output() + "/model", "old");
  WriteText(Output() + "/untouched", "as it was");
  Began();
  Changed({{"model", "of 0"}, {"deep/er/new", "of 0"}}, true);
  Changed({{"model", "of 1"}, {"deep/er/new", "of 0"}, {"deep/shard-1", "of 1"}}, false);
  EXPECT_EQ(FilesIn(Output()), (Files{{"model", "of 0"},
                                      {"untouched", "as it was"},
                                      {"deep/er/new", "of 0"},
                                      {"deep/shard-1", "of 1"},
                                      {".rank-0-1/model", "of 1"}}));
}

TEST_F(Trees, WhatOnlyOneRankHasChangedIsThatRanksToChange) {
  WriteText(Output() + "/shard-1", "first life");
  Began();
  Changed({}, true);
  Changed({{"shard-1", "second life"}}, false);
  EXPECT_EQ(FilesIn(Output()), (Files{{"shard-1", "second life"}}));
}

TEST_F(Trees, AFileThatOnceDifferedStaysTheRanksOwn) {
  WriteText(Output() + "/state", "of 0");
  WriteText(Output() + "/.rank-0-1/state", "of 1");
  Began();
  EXPECT_FALSE(fs::exists(dir_.At("base/.rank-0-1")));
  Changed({}, true);
  Changed({{"state", "of 1, later"}}, false);
  EXPECT_EQ(FilesIn(Output()), (Files{{"state", "of 0"}, {".rank-0-1/state", "of 1, later"}}));
}

TEST_F(Trees, DoneTwiceItComesToTheSame) {
  WriteText(Output() + "/model", "old");
  Began();
  for (int times = 0; times < 2; ++times) {
    Changed({{"model", "of 0"}, {"link", "-> model"}}, true);
    Changed({{"model", "of 1"}, {"link", "-> model"}, {"own", "of 1"}, {"own-link", "-> ../.."}}, false);
  }
  EXPECT_EQ(FilesIn(Output()), (Files{{"model", "of 0"},
                                      {"link", "-> model"},
                                      {"own", "of 1"},
                                      {"own-link", "-> ../.."},
                                      {".rank-0-1/model", "of 1"}}));
}

TEST_F(Trees, NothingIsWrittenThroughALink) {
  fs::create_directories(dir_.At("outside"));
  fs::create_directories(Output());
  fs::create_directory_symlink(dir_.At("outside"), Output() + "/way");
  fs::create_symlink(dir_.At("outside/target"), Output() + "/file");
  Began();
  Changed({{"way/in", "of 0"}, {"file", "of 0"}}, true);
  EXPECT_TRUE(FilesIn(dir_.At("outside")).empty());
  EXPECT_EQ(ReadText(Output() + "/way/in"), "of 0");
  EXPECT_TRUE(fs::is_directory(fs::symlink_status(Output() + "/way")));
  EXPECT_EQ(ReadText(Output() + "/file"), "of 0");
  // Another rank's is put beside what is in its way.
  fs::remove_all(Output() + "/way");
  fs::create_directory_symlink(dir_.At("outside"), Output() + "/way");
  Changed({{"way/in", "of 1"}}, false);
  EXPECT_TRUE(FilesIn(dir_.At("outside")).empty());
  EXPECT_EQ(ReadText(Output() + "/.rank-0-1/way/in"), "of 1");
}

TEST_F(Trees, WhatIsInTheWayOfTheFirstRankIsKeptUnderAnotherName) {
  WriteText(Output() + "/a", "a file");
  WriteText(Output() + "/b/inside", "a directory");
  Began();
  Changed({{"a/inside", "of 0"}, {"b", "of 0"}}, true);
  const Files tree = FilesIn(Output());
  EXPECT_EQ(tree.at("a/inside"), "of 0");
  EXPECT_EQ(tree.at("b"), "of 0");
  EXPECT_EQ(tree.size(), 4u);
}

TEST_F(Trees, NamesThatAreReservedAreNotTakenFromAHost) {
  fs::create_directories(Output());
  Began();
  Changed({{".rank-0-0/x", "forged"}, {"fine", "of 0"}}, true);
  EXPECT_EQ(FilesIn(Output()), (Files{{"fine", "of 0"}}));
}

TEST_F(Trees, ALinkedTreeIsTheSameFilesAndIsCounted) {
  WriteText(Output() + "/a/b", "12345");
  WriteText(Output() + "/.rank-0-1/b", "x");
  fs::create_symlink("/etc/passwd", Output() + "/link");
  ASSERT_EQ(mkfifo((Output() + "/fifo").c_str(), 0600), 0);
  const auto linked = LinkTree(Output(), dir_.At("base"), kGoOn);
  ASSERT_TRUE(linked.ok()) << linked.status();
  EXPECT_EQ(linked->bytes, 5);
  EXPECT_EQ(FilesIn(dir_.At("base")), (Files{{"a/b", "12345"}, {"link", "-> /etc/passwd"}}));
  EXPECT_TRUE(fs::equivalent(Output() + "/a/b", dir_.At("base/a/b")));
  EXPECT_TRUE(LinkTree(dir_.At("none"), dir_.At("empty"), kGoOn).ok());
  EXPECT_TRUE(fs::is_directory(dir_.At("empty")));
  EXPECT_TRUE(absl::IsCancelled(BytesInTree(Output(), [] { return true; }).status()));
}

// Random changes by two ranks over several lives, held against a plain description of the rules.
TEST_F(Trees, RandomLivesFollowTheRules) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Random random(seed);
    fs::remove_all(Output());
    fs::create_directories(Output());
    Files shared;
    Files own;
    for (int life = 0; life < 4; ++life) {
      Began();
      const Files then = shared;
      const auto changes = [&](const char* who) {
        Files files;
        for (const char* name : {"a", "b", "d/a", "d/e/f"}) {
          if (random.Chance(400)) files[name] = fmt::format("{} {} {}", who, life, random.Between(0, 1));
        }
        return files;
      };
      const Files of_first = changes("both");
      const Files of_second = changes(random.Chance(500) ? "both" : "second");
      for (const auto& [name, content] : of_first) shared[name] = content;
      for (const auto& [name, content] : of_second) {
        const bool untouched = !of_first.contains(name);
        if (own.contains(name) ? content == own[name] : false) continue;
        if (shared.contains(name) && shared[name] == content && !(untouched && !own.contains(name))) continue;
        (untouched && !own.contains(name) ? shared : own)[name] = content;
      }
      Changed(of_first, true);
      Changed(of_second, false);
      Files expected = shared;
      for (const auto& [name, content] : own) expected[".rank-0-1/" + name] = content;
      ASSERT_EQ(FilesIn(Output()), expected) << "seed " << seed << " life " << life;
    }
  }
}

// --- rsync ----------------------------------------------------------------------------------------------

class Rsyncs : public ::testing::Test {
 protected:
  CopyOrder Order(CopyDirection direction) const {
    CopyOrder order{.host = {"node1", "10.0.0.1"}, .direction = direction, .source = {}, .target = {}};
    order.source = dir_.At("from 'here'");
    order.target = dir_.At("to $(there)");
    return order;
  }
  absl::Status Copy(const CopyOrder& order, int cancel_fd = -1) {
    fs::create_directories(order.source);
    fs::create_directories(order.target);
    return copier_.Copy(
        order, [this](int64_t bytes) { told_.push_back(bytes); }, cancel_fd, absl::Now() + absl::Seconds(60));
  }
  std::string From(const std::string& name) const { return dir_.At("from 'here'/" + name); }
  std::string To(const std::string& name) const { return dir_.At("to $(there)/" + name); }

  TempDir dir_;
  std::vector<int64_t> told_;
  // sshd gives the words to a shell in the same way.
  RsyncCopier copier_{[](const RankHost&) {
    return std::vector<std::string>{"/bin/sh", "-c", "shift; exec /bin/sh -c \"$*\"", "ssh"};
  }};
};

TEST_F(Rsyncs, ContentsModesTimesLinksAndHolesGoAlong) {
  WriteText(From("plain"), "x");
  WriteText(From("-rf"), "an option");
  WriteText(From("new\nline \xff 'quote' *"), "hostile");
  WriteText(From("run.sh"), "#!/bin/sh\n");
  chmod(From("run.sh").c_str(), 0750);
  fs::create_symlink("/etc/passwd", From("link"));
  const int sparse = open(From("sparse").c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
  ASSERT_EQ(ftruncate(sparse, 64 << 20), 0);
  ASSERT_EQ(pwrite(sparse, "end", 3, (64 << 20) - 3), 3);
  close(sparse);
  ASSERT_EQ(mkfifo(From("fifo").c_str(), 0600), 0);
  const absl::Status copied = Copy(Order(CopyDirection::kToHost));
  ASSERT_TRUE(copied.ok()) << copied;
  EXPECT_EQ(ReadText(To("-rf")), "an option");
  EXPECT_EQ(ReadText(To("new\nline \xff 'quote' *")), "hostile");
  EXPECT_EQ(fs::read_symlink(To("link")), "/etc/passwd");
  EXPECT_FALSE(fs::exists(fs::symlink_status(To("fifo"))));
  struct stat a {};
  struct stat b {};
  ASSERT_EQ(stat(From("run.sh").c_str(), &a), 0);
  ASSERT_EQ(stat(To("run.sh").c_str(), &b), 0);
  EXPECT_EQ(b.st_mode & 07777, 0750u);
  EXPECT_EQ(b.st_mtim.tv_nsec, a.st_mtim.tv_nsec);
  ASSERT_EQ(stat(To("sparse").c_str(), &b), 0);
  EXPECT_EQ(b.st_size, 64 << 20);
  EXPECT_LT(b.st_blocks * 512, 1 << 20);
  ASSERT_FALSE(told_.empty());
  EXPECT_GE(told_.back(), 64 << 20);
}

TEST_F(Rsyncs, WhatAHostSendsCanBeFollowedNowhereUntilItIsMerged) {
  WriteText(From("setuid"), "x");
  chmod(From("setuid").c_str(), 06755);
  fs::create_directories(dir_.At("outside"));
  fs::create_directory_symlink(dir_.At("outside"), From("way"));
  CopyOrder order = Order(CopyDirection::kFromHost);
  order.lock = dir_.At("lock");
  ASSERT_TRUE(Copy(order).ok());
  struct stat about {};
  ASSERT_EQ(stat(To("setuid").c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 07777, 0755u);
  EXPECT_FALSE(fs::exists(To("way")));
  EXPECT_EQ(UsableLink(fs::read_symlink(To("way")).string()), dir_.At("outside"));
}

TEST_F(Rsyncs, FiltersAndWhatIsTheSameElsewhereLeaveOut) {
  WriteText(From("output/changed"), "new");
  WriteText(From("output/same"), "same");
  WriteText(From("output/.rank-0-1/x"), "x");
  WriteText(From("attempts/train-1/0-0.log"), "log");
  WriteText(From("attempts/train-1/0-1.log"), "of another rank");
  WriteText(From("attempts/train-1/attempt.claim"), "claim");
  fs::create_directories(dir_.At("base"));
  fs::copy(From("output"), dir_.At("base/output"), fs::copy_options::recursive);
  WriteText(dir_.At("base/output/changed"), "old");
  fs::last_write_time(dir_.At("base/output/same"), fs::last_write_time(From("output/same")));
  CopyOrder order = Order(CopyDirection::kFromHost);
  order.filters = {"- /output/.rank-*",
                   "+ /output/***",
                   "+ /attempts/",
                   "+ /attempts/train-1/",
                   "+ /attempts/train-1/0-0.log",
                   "- *"};
  order.except_as_in = {dir_.At("base"), dir_.At("none")};
  ASSERT_TRUE(Copy(order).ok());
  EXPECT_EQ(FilesIn(order.target), (Files{{"output/changed", "new"}, {"attempts/train-1/0-0.log", "log"}}));
}

TEST_F(Rsyncs, OnlyMissingKeepsAndDeleteOthersTakesAway) {
  WriteText(From("output/a"), "tpd's");
  WriteText(To("output/a"), "the host's, newer");
  WriteText(To("output/b"), "the host's");
  WriteText(To("attempts/x/claim"), "stays");
  CopyOrder order = Order(CopyDirection::kToHost);
  order.filters = {"+ /output/***", "- *"};
  order.only_missing = true;
  ASSERT_TRUE(Copy(order).ok());
  EXPECT_EQ(ReadText(To("output/a")), "the host's, newer");
  order.only_missing = false;
  order.delete_others = true;
  ASSERT_TRUE(Copy(order).ok());
  EXPECT_EQ(FilesIn(order.target), (Files{{"output/a", "tpd's"}, {"attempts/x/claim", "stays"}}));
}

TEST_F(Rsyncs, ACancelledCopyGoesOnWhereItWas) {
  std::string bytes(32 << 20, '\0');
  Random random(5);
  for (char& byte : bytes) byte = static_cast<char>(random.Between(0, 255));
  WriteText(From("large"), bytes);
  const int cancel = eventfd(0, EFD_CLOEXEC);
  const uint64_t one = 1;
  ASSERT_EQ(write(cancel, &one, sizeof one), static_cast<ssize_t>(sizeof one));
  EXPECT_TRUE(absl::IsCancelled(Copy(Order(CopyDirection::kToHost), cancel)));
  close(cancel);
  ASSERT_TRUE(Copy(Order(CopyDirection::kToHost)).ok());
  EXPECT_EQ(ReadText(To("large")), bytes);
}

TEST_F(Rsyncs, AHostWithoutRsyncIsToldSo) {
  RsyncCopier copier([](const RankHost&) {
    return std::vector<std::string>{"/bin/sh", "-c", "echo 'sh: 1: rsync: not found' >&2; exit 127", "ssh"};
  });
  CopyOrder order = Order(CopyDirection::kToHost);
  fs::create_directories(order.source);
  const absl::Status copied = copier.Copy(order, nullptr, -1, absl::Now() + absl::Seconds(20));
  EXPECT_THAT(std::string(copied.message()), HasSubstr("node1 has no rsync: install the package rsync there"));
}

TEST_F(Rsyncs, AFullDiskIsToldAsThat) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to mount a small filesystem";
  WriteText(From("large"), std::string(4 << 20, 'x'));
  CopyOrder order = Order(CopyDirection::kToHost);
  fs::create_directories(order.target);
  const std::string mount = fmt::format("mount -t tmpfs -o size=1m tmpfs '{}'", order.target);
  if (std::system(mount.c_str()) != 0) GTEST_SKIP() << "no tmpfs can be mounted";
  const absl::Status copied = Copy(order);
  EXPECT_EQ(std::system(fmt::format("umount '{}'", order.target).c_str()), 0);
  EXPECT_TRUE(absl::IsResourceExhausted(copied)) << copied;
  EXPECT_THAT(std::string(copied.message()), HasSubstr("the disk of node1"));
}

}  // namespace
}  // namespace tp::node
