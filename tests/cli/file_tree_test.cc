#include "cli/file_tree.h"

#include <cerrno>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/human_bytes.h"
#include "base/strings.h"
#include "temp_dir.h"

namespace tp::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> PathsIn(const TempDir& dir) {
  const auto tree = ScanTree(dir.path());
  std::vector<std::string> paths;
  if (!tree.ok()) return {std::string(Message(tree.status()))};
  for (const snapshot::Entry& entry : tree->entries) paths.push_back(entry.path);
  return paths;
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
  for (const char* name : {".gitignore", "sub/mod.py", "environment"}) dir.Write(name, "x");
  EXPECT_THAT(PathsIn(dir), ElementsAre(".gitignore", "environment", "sub", "sub/mod.py"));
}

TEST(ScanTreeTest, ATpignoreBringsBackWhatTheDefaultsLeaveOut) {
  TempDir dir;
  dir.Write("venv/x", "x");
  dir.Write("mod.pyc", "x");
  dir.Write(".tpignore", "!venv\n!*.pyc\n");
  EXPECT_THAT(PathsIn(dir), ElementsAre(".tpignore", "mod.pyc", "venv", "venv/x"));
}

TEST(ScanTreeTest, SaysWhatIsLeftOutByWhichLine) {
  TempDir dir;
  dir.Write("data/big", "x");
  dir.Write("sub/a.log", "x");
  dir.Write("sub/.tpignore", "# logs\n*.log\n");
  dir.Write(".tpignore", "/data/\n");
  dir.Write("node_modules/m", "x");
  const auto tree = ScanTree(dir.path());
  ASSERT_TRUE(tree.ok()) << tree.status();
  ASSERT_EQ(tree->left_out.size(), 3u);
  EXPECT_EQ(tree->left_out[0].path, "data/");
  EXPECT_EQ(tree->left_out[0].rule.file, ".tpignore");
  EXPECT_EQ(tree->left_out[0].rule.line, 1);
  EXPECT_EQ(tree->left_out[1].path, "node_modules/");
  EXPECT_EQ(tree->left_out[1].rule.file, "");
  EXPECT_EQ(tree->left_out[2].path, "sub/a.log");
  EXPECT_EQ(tree->left_out[2].rule.file, "sub/.tpignore");
  EXPECT_EQ(tree->left_out[2].rule.line, 2);
}

TEST(ScanTreeTest, LooksAtEachEntryOnceAndAtNothingLeftOut) {
  TempDir dir;
  for (int i = 0; i < 50; ++i) dir.Write("sub/" + std::to_string(i), "x");
  for (int i = 0; i < 50; ++i) dir.Write("venv/" + std::to_string(i), "x");
  const auto tree = ScanTree(dir.path());
  ASSERT_TRUE(tree.ok()) << tree.status();
  EXPECT_EQ(tree->stats, 51);
  EXPECT_EQ(tree->entries.size(), 51u);
}

TEST(ScanTreeTest, KeepsLinksAndExecutableBits) {
  TempDir dir;
  dir.Write("data/file", "x", 0755);
  dir.Link("latest", "data/file");
  dir.Link(".tpignore", "data/file");
  const auto tree = ScanTree(dir.path());
  ASSERT_TRUE(tree.ok()) << tree.status();
  EXPECT_EQ(tree->files, 1);
  EXPECT_TRUE(tree->entries[2].executable);
  EXPECT_EQ(tree->entries.back().link_target, "data/file");
}

TEST(ScanTreeTest, RefusesPipesUnlessTheyAreLeftOut) {
  TempDir dir;
  ASSERT_EQ(::mkfifo((dir / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(PathsIn(dir), ElementsAre(HasSubstr("'pipe': a device, socket or pipe")));
  dir.Write(".tpignore", "pipe\n");
  EXPECT_THAT(PathsIn(dir), ElementsAre(".tpignore"));
}

TEST(ResolveDirectoryTest, SaysThatThereIsNoSuchDirectory) {
  EXPECT_THAT(std::string(Message(ResolveDirectory("/nonexistent/dir").status())), HasSubstr("--dir"));
}

TEST(HumanBytesTest, UsesBinaryUnits) {
  EXPECT_EQ(HumanBytes(1023), "1023 B");
  EXPECT_EQ(HumanBytes(1536), "1.5 KiB");
  EXPECT_EQ(HumanBytes(int64_t{3} << 30), "3.0 GiB");
}

}  // namespace
}  // namespace tp::cli
