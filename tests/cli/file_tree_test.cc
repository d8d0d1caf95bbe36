#include "cli/file_tree.h"

#include <cerrno>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/strings.h"
#include "temp_dir.h"

namespace tp::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr int64_t kNoLimit = int64_t{1} << 40;

std::vector<std::string> PathsIn(const TempDir& dir) {
  const auto tree = ScanTree(dir.path(), kNoLimit);
  std::vector<std::string> paths;
  if (!tree.ok()) return {std::string(Message(tree.status()))};
  for (const TreeEntry& entry : tree->entries) paths.push_back(entry.path);
  return paths;
}

std::string ErrorIn(const TempDir& dir, int64_t max_bytes = kNoLimit) {
  const auto tree = ScanTree(dir.path(), max_bytes);
  return tree.ok() ? "no error" : std::string(Message(tree.status()));
}

TEST(ScanTreeTest, SortsByNameWithDirectoriesBeforeTheirContent) {
  TempDir dir;
  dir.Write("b.py", "");
  dir.Write("a/z", "");
  dir.Write("a/b/c", "");
  dir.Write("Z", "");
  EXPECT_THAT(PathsIn(dir), ElementsAre("Z", "a", "a/b", "a/b/c", "a/z", "b.py"));
}

TEST(ScanTreeTest, LeavesOutWhatIsNeverWanted) {
  TempDir dir;
  for (const char* name : {".git/config", "__pycache__/x", "venv/bin/p", ".venv/x", "node_modules/m", "mod.pyc",
                           "sub/__pycache__/y", "sub/node_modules/z"}) {
    dir.Write(name, "x");
  }
  for (const char* name : {".gitignore", ".tpignore", "sub/mod.py", "environment", ".pyc"}) dir.Write(name, "x");
  EXPECT_THAT(PathsIn(dir), ElementsAre(".gitignore", ".pyc", ".tpignore", "environment", "sub", "sub/mod.py"));
}

TEST(ScanTreeTest, KeepsLinksInsideTheTree) {
  TempDir dir;
  dir.Write("data/file", "x");
  dir.Link("latest", "data/file");
  dir.Link("data/up", "../data");
  dir.Link("dangling", "nowhere");
  const auto tree = ScanTree(dir.path(), kNoLimit);
  ASSERT_TRUE(tree.ok()) << tree.status();
  EXPECT_EQ(tree->entries.back().link_target, "data/file");
  EXPECT_EQ(tree->files, 1);
}

TEST(ScanTreeTest, RefusesLinksOutOfTheTree) {
  for (const char* target : {"/etc/passwd", "../outside", "a/../../outside"}) {
    TempDir dir;
    dir.Link("link", target);
    EXPECT_THAT(ErrorIn(dir), HasSubstr("link -> " + std::string(target) + ": the link leaves the directory"));
  }
}

TEST(ScanTreeTest, SeesThroughLinksThatLeaveByAnotherLink) {
  TempDir dir;
  dir.Write("a/b/file", "x");
  dir.Link("a/b/root", "../..");
  dir.Link("escape", "a/b/root/..");
  EXPECT_THAT(ErrorIn(dir), HasSubstr("escape -> a/b/root/..: the link leaves the directory"));
}

TEST(ScanTreeTest, RefusesPipes) {
  TempDir dir;
  ASSERT_EQ(::mkfifo((dir / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(ErrorIn(dir), HasSubstr("pipe: a device, socket or pipe"));
}

TEST(ScanTreeTest, NamesTheLargestFilesOfWhatIsTooLarge) {
  TempDir dir;
  dir.Write("small", std::string(10, 'x'));
  dir.Write("sub/large", std::string(5000, 'x'));
  dir.Write("medium", std::string(2000, 'x'));
  const std::string error = ErrorIn(dir, 4096);
  EXPECT_THAT(error, HasSubstr("sub/large (4.9 KiB), medium (2.0 KiB), small (10 B)"));
  EXPECT_THAT(error, HasSubstr("holds 6.8 KiB, a snapshot at most 4.0 KiB"));
}

TEST(ScanTreeTest, SaysThatThereIsNoSuchDirectory) {
  EXPECT_THAT(std::string(Message(ScanTree("/nonexistent/dir", kNoLimit).status())), HasSubstr("--dir"));
}

TEST(StaysInsideTest, CountsEveryStep) {
  EXPECT_TRUE(StaysInside("link", "file"));
  EXPECT_TRUE(StaysInside("a/b/link", "../../file"));
  EXPECT_TRUE(StaysInside("a/link", ".././b//c"));
  EXPECT_FALSE(StaysInside("a/link", "../../file"));
  EXPECT_FALSE(StaysInside("link", ".."));
  EXPECT_FALSE(StaysInside("a/link", "../../a/file")) << "even where it comes back";
  EXPECT_FALSE(StaysInside("link", "/file"));
  EXPECT_FALSE(StaysInside("link", ""));
}

TEST(HumanBytesTest, UsesBinaryUnits) {
  EXPECT_EQ(HumanBytes(1023), "1023 B");
  EXPECT_EQ(HumanBytes(1536), "1.5 KiB");
  EXPECT_EQ(HumanBytes(int64_t{3} << 30), "3.0 GiB");
}

}  // namespace
}  // namespace tp::cli
