#include "launch/archive.h"

#include <sys/stat.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "tests/launch/tar_builder.h"
#include "tests/launch/temp_dir.h"

namespace tp::launch {
namespace {

using ::testing::HasSubstr;
using ::tp::testing::ReadText;
using ::tp::testing::TarBuilder;
using ::tp::testing::TempDir;
using ::tp::testing::WriteText;
namespace fs = std::filesystem;

class ArchiveTest : public ::testing::Test {
 protected:
  absl::Status Extract(const std::string& bytes, const SnapshotLimits& limits = {}) {
    WriteText(dir_.At("a.tar"), bytes);
    fs::remove_all(out());
    fs::create_directories(out());
    const absl::Status extracted = ExtractSnapshot(dir_.At("a.tar"), out(), limits);
    // The check at upload and the extraction at launch never disagree.
    EXPECT_EQ(CheckSnapshot(dir_.At("a.tar"), limits).status(), extracted);
    return extracted;
  }
  void ExpectRefused(const std::string& bytes, const std::string& words) {
    const absl::Status status = Extract(bytes);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(Message(status)), HasSubstr(words));
    EXPECT_FALSE(fs::exists(dir_.At("escaped")));
  }
  std::string out() const { return dir_.At("out"); }

  TempDir dir_;
};

TEST_F(ArchiveTest, RestoresFilesDirectoriesLinksAndModes) {
  TarBuilder tar;
  tar.Directory("./")
      .Directory("./pkg", 0750)
      .File("./pkg/a.py", "print(1)\n", 0640)
      .File("run.sh", "#!/bin/sh\n", 0755);
  tar.Symlink("pkg/up", "../run.sh").Symlink("here", "pkg").HardLink("pkg/b.py", "./pkg/a.py").File("deep/er/x", "");
  ASSERT_TRUE(Extract(tar.Bytes()).ok());
  EXPECT_EQ(ReadText(out() + "/pkg/a.py"), "print(1)\n");
  EXPECT_EQ(ReadText(out() + "/pkg/b.py"), "print(1)\n");
  EXPECT_EQ(ReadText(out() + "/pkg/up"), "#!/bin/sh\n");
  EXPECT_EQ(fs::read_symlink(out() + "/here"), "pkg");
  struct stat about {};
  ASSERT_EQ(stat((out() + "/run.sh").c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 07777, 0755u);
  EXPECT_EQ(about.st_mtim.tv_sec, 1700000000);
  ASSERT_EQ(stat((out() + "/pkg").c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 07777, 0750u);
}

TEST_F(ArchiveTest, SpecialModeBitsAreDropped) {
  ASSERT_TRUE(Extract(TarBuilder().File("tool", "x", 06755).Bytes()).ok());
  struct stat about {};
  ASSERT_EQ(stat((out() + "/tool").c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 07777, 0755u);
}

TEST_F(ArchiveTest, RefusesWhatLeavesTheTree) {
  ExpectRefused(TarBuilder().File("/escaped", "x").Bytes(), "absolute");
  ExpectRefused(TarBuilder().File("../escaped", "x").Bytes(), "leads out");
  ExpectRefused(TarBuilder().File("a/../../escaped", "x").Bytes(), "leads out");
  ExpectRefused(TarBuilder().Symlink("link", "/etc").Bytes(), "outside");
  ExpectRefused(TarBuilder().Symlink("link", "../escaped").Bytes(), "outside");
  ExpectRefused(TarBuilder().Symlink("a/link", "../../escaped").Bytes(), "outside");
  ExpectRefused(TarBuilder().Symlink("link", "").Bytes(), "outside");
  ExpectRefused(TarBuilder().HardLink("link", "../../etc/passwd").Bytes(), "leads out");
  ExpectRefused(TarBuilder().HardLink("link", "later").File("later", "x").Bytes(), "no earlier file");
  ExpectRefused(TarBuilder().PaxPath("../escaped").File("harmless", "x").Bytes(), "leads out");
}

TEST_F(ArchiveTest, RefusesALinkThatOnlyLooksInside) {
  // x/y/l is the tree's root, so that x/y/l/../escaped would lie above it.
  const std::string bytes = TarBuilder().Symlink("x/y/l", "../..").Symlink("out", "x/y/l/../escaped").Bytes();
  ExpectRefused(bytes, "'..' may only come first");
}

TEST_F(ArchiveTest, RefusesNamesBeneathALinkOrFile) {
  ExpectRefused(TarBuilder().Symlink("d", "e").File("d/x", "x").Bytes(), "not a directory");
  ExpectRefused(TarBuilder().File("d", "").File("d/x", "x").Bytes(), "not a directory");
}

TEST_F(ArchiveTest, RefusesANameTwice) {
  ExpectRefused(TarBuilder().File("a", "1").File("./a", "2").Bytes(), "twice");
  ExpectRefused(TarBuilder().Directory("a").File("a", "2").Bytes(), "twice");
  ExpectRefused(TarBuilder().File("a/b", "1").Symlink("a", "b").Bytes(), "twice");
  EXPECT_TRUE(Extract(TarBuilder().File("c/b", "1").Directory("c").Directory("c").Bytes()).ok());
}

TEST_F(ArchiveTest, RefusesDevicesAndPipes) {
  for (const char type : {'3', '4', '6'}) ExpectRefused(TarBuilder().Special("thing", type).Bytes(), "device");
}

TEST_F(ArchiveTest, RefusesWhatIsNoTar) { ExpectRefused(std::string(2048, 'x'), "not a readable tar"); }

TEST_F(ArchiveTest, RefusesATruncatedArchive) {
  const std::string bytes = TarBuilder().File("a", std::string(5000, 'x')).Bytes();
  ExpectRefused(bytes.substr(0, 2000), "not a readable tar");
}

TEST_F(ArchiveTest, EnforcesItsLimits) {
  const std::string bytes = TarBuilder().File("a", std::string(600, 'x')).File("b", std::string(600, 'x')).Bytes();
  EXPECT_EQ(Extract(bytes, {.max_entries = 1}).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(Extract(bytes, {.max_bytes = 1000}).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(Extract(bytes, {.max_entries = 2, .max_bytes = 1200}).ok());
  EXPECT_EQ(Extract(TarBuilder().File(std::string(90, 'n'), "").Bytes(), {.max_path_bytes = 64}).code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(ArchiveTest, KeepsNamesThatAreNoAscii) {
  ASSERT_TRUE(Extract(TarBuilder().File("na\xc3\xafve \n'\"$(x).py", "1").File("latin\xe9", "2").Bytes()).ok());
  EXPECT_EQ(ReadText(out() + "/na\xc3\xafve \n'\"$(x).py"), "1");
  EXPECT_EQ(ReadText(out() + "/latin\xe9"), "2");
}

TEST_F(ArchiveTest, KeepsPaxNamesThatAreNoAscii) {
  ASSERT_TRUE(Extract(TarBuilder().PaxPath("gr\xc3\xbc\xc3\x9f/\xe4\xbd\xa0.txt").File("short", "3").Bytes()).ok());
  EXPECT_EQ(ReadText(out() + "/gr\xc3\xbc\xc3\x9f/\xe4\xbd\xa0.txt"), "3");
}

TEST_F(ArchiveTest, AnEmptyArchiveIsAnEmptyTree) {
  EXPECT_TRUE(Extract(TarBuilder().Bytes()).ok());
  EXPECT_TRUE(Extract("").ok());
}

TEST_F(ArchiveTest, AMissingArchiveIsNotFound) {
  EXPECT_EQ(ExtractSnapshot(dir_.At("none.tar"), dir_.path(), {}).code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace tp::launch
