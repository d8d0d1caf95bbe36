#include "snapshot/manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/status.h"
#include "sample.h"

namespace tp::snapshot {
namespace {

using ::testing::HasSubstr;

std::string ErrorOf(std::vector<Entry> entries) {
  const auto manifest = Manifest::Make(std::move(entries));
  if (manifest.ok()) return "accepted";
  EXPECT_EQ(manifest.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(Message(manifest.status()));
}

TEST(ManifestTest, OneTreeHasOneTextWhateverTheOrder) {
  const auto one = Manifest::Make({Dir("a"), File("a/x", "1"), File("a.b", "2", true), Link("l", "a/x")});
  const auto other = Manifest::Make({Link("l", "a/x"), File("a.b", "2", true), File("a/x", "1"), Dir("a")});
  ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_EQ(one->id(), other->id());
  EXPECT_EQ(one->files(), 2);
  EXPECT_EQ(one->bytes(), 2);
  const std::string nul(1, '\0');
  EXPECT_EQ(one->text(), "tp-manifest 1\nd a" + nul + "x " + Digest("2") + " 1 a.b" + nul + "f " + Digest("1") +
                             " 1 a/x" + nul + "l l" + nul + "a/x" + nul);
  EXPECT_EQ(one->id(), Digest(one->text()));
}

TEST(ManifestTest, AnyChangeIsAnotherSnapshot) {
  const std::string id = Manifest::Make({File("a", "1")})->id();
  EXPECT_NE(id, Manifest::Make({File("a", "2")})->id());
  EXPECT_NE(id, Manifest::Make({File("b", "1")})->id());
  EXPECT_NE(id, Manifest::Make({File("a", "1", true)})->id());
  EXPECT_NE(id, Manifest::Make({File("a", "1"), Dir("d")})->id());
}

TEST(ManifestTest, AnEmptyTreeIsOneToo) {
  EXPECT_EQ(Manifest::Make({})->text(), "tp-manifest 1\n");
  EXPECT_TRUE(Manifest::Parse("tp-manifest 1\n").ok());
}

TEST(ManifestTest, ParsesWhatItWrote) {
  const auto manifest = Manifest::Make(
      {Dir("d"), File("d/\xff name\nwith anything", "1"), File("D", "2"), File("empty", ""), Link("l", "d/\xfe")});
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  const auto parsed = Manifest::Parse(manifest->text());
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->entries(), manifest->entries());
  EXPECT_EQ(parsed->id(), manifest->id());
}

TEST(ManifestTest, ATornOrForgedTextIsDataLoss) {
  const std::string text = Manifest::Make({Dir("a"), File("a/x", "1"), Link("l", "a")})->text();
  for (size_t size = 0; size < text.size(); ++size) {
    const auto parsed = Manifest::Parse(text.substr(0, size));
    EXPECT_TRUE(parsed.ok() || absl::IsDataLoss(parsed.status())) << size;
  }
  const std::string nul(1, '\0');
  for (const std::string& bad :
       {"tp-manifest 2\n" + nul, "tp-manifest 1\nd b" + nul + "d a" + nul, "tp-manifest 1\nd ../x" + nul,
        "tp-manifest 1\nf " + Digest("1") + " 01 a" + nul, "tp-manifest 1\nq a" + nul}) {
    EXPECT_EQ(Manifest::Parse(bad).status().code(), absl::StatusCode::kDataLoss) << bad;
  }
}

TEST(ManifestTest, PathsThatLeaveTheTreeAreRefused) {
  EXPECT_THAT(ErrorOf({File("/etc/passwd")}), HasSubstr("'/etc/passwd' is an absolute path"));
  for (const char* path : {"..", "../x", "a/../x", "a/..", ".", "./a", "a/./b", "a//b", "a/"}) {
    EXPECT_THAT(ErrorOf({Dir("a"), File(path)}), HasSubstr("a path is made of names only")) << path;
  }
  EXPECT_THAT(ErrorOf({File("")}), HasSubstr("has no path"));
  EXPECT_THAT(ErrorOf({File(std::string("a\0b", 3))}), HasSubstr("NUL"));
}

TEST(ManifestTest, NamesNoFileSystemTakesAreRefused) {
  EXPECT_THAT(ErrorOf({File(std::string(5000, 'a'))}), HasSubstr("a path of 5000 bytes is too long"));
  EXPECT_THAT(ErrorOf({File(std::string(256, 'a'))}), HasSubstr("a name of 256 bytes is too long"));
  EXPECT_EQ(ErrorOf({File(std::string(255, 'a'))}), "accepted");
}

TEST(ManifestTest, WhatIsNoTreeIsRefused) {
  EXPECT_THAT(ErrorOf({File("a"), File("a")}), HasSubstr("'a' is there twice"));
  EXPECT_THAT(ErrorOf({File("a"), Dir("a")}), HasSubstr("'a' is there twice"));
  EXPECT_THAT(ErrorOf({File("a/b")}), HasSubstr("in a directory that the snapshot does not list"));
  EXPECT_THAT(ErrorOf({File("a"), File("a/b")}), HasSubstr("'a/b' lies beneath 'a', which is no directory"));
  EXPECT_THAT(ErrorOf({Dir("d"), Link("a", "d"), File("a/b")}), HasSubstr("beneath 'a', which is no directory"));
}

TEST(ManifestTest, FilesNeedADigestAndASize) {
  Entry file = File("a");
  file.bytes = -1;
  EXPECT_THAT(ErrorOf({file}), HasSubstr("-1 bytes"));
  for (const std::string& sha256 : {std::string(), std::string(63, 'a'), std::string(64, 'A'), std::string(64, '/')}) {
    file = File("a");
    file.sha256 = sha256;
    EXPECT_THAT(ErrorOf({file}), HasSubstr("no SHA-256")) << sha256;
  }
}

TEST(ManifestTest, AnUnknownKindIsRefused) {
  Entry entry = Dir("a");
  entry.kind = static_cast<EntryKind>(7);
  EXPECT_THAT(ErrorOf({entry}), HasSubstr("neither file, directory nor link"));
}

TEST(ManifestTest, NamesAreKeptByTheirBytes) {
  EXPECT_EQ(ErrorOf({File("readme"), File("README"), File("Readme")}), "accepted") << "only case differs";
  EXPECT_EQ(ErrorOf({File("\xff\xfe"), File("caf\xc3\xa9"), File("cafe\xcc\x81")}), "accepted");
  EXPECT_EQ(ErrorOf({File("..."), File("..a"), File(" "), File("a\nb")}), "accepted");
}

TEST(LinkTest, LinksInsideStay) {
  const std::vector<Entry> tree = {Dir("a"), Dir("a/b"), File("a/b/f"), Link("a/up", ".."), Link("a/b/top", "../..")};
  for (const char* target :
       {"a/b/f", ".", "./a//b/", "a/../a/b", "a/up/a/b/top/a", "nowhere", "nowhere/../a", "link", "a/b/f/.."}) {
    std::vector<Entry> entries = tree;
    entries.push_back(Link("link", target));
    EXPECT_EQ(ErrorOf(entries), "accepted") << target;
  }
}

TEST(LinkTest, LinksOutAreRefused) {
  const std::vector<Entry> tree = {Dir("a"), Dir("a/b"), File("a/b/f"), Link("a/b/top", "../.."), Link("root", ".")};
  for (const char* target : {"/", "/etc/passwd", "", "..", "../x", "a/../..", "a/b/../../../x", "nowhere/../../x",
                             "a/b/top/..", "a/b/top/../etc", "root/root/..", "a/b/top/a/b/top/../x"}) {
    std::vector<Entry> entries = tree;
    entries.push_back(Link("link", target));
    EXPECT_THAT(ErrorOf(entries), HasSubstr("leaves the directory")) << target;
  }
  EXPECT_THAT(ErrorOf({Link("l", std::string("a\0b", 3))}), HasSubstr("NUL"));
  EXPECT_THAT(ErrorOf({Link("l", std::string(5000, 'a'))}), HasSubstr("5000 bytes"));
}

TEST(LinkTest, AChainOfLinksIsFollowed) {
  EXPECT_THAT(ErrorOf({Dir("d"), Link("d/one", ".."), Link("two", "d/one/.."), Link("three", "two")}),
              HasSubstr("leaves the directory"));
  EXPECT_THAT(ErrorOf({Dir("z"), Link("a", "z/out"), Link("z/out", "../..")}), HasSubstr("leaves the directory"));
}

TEST(LinkTest, LoopsLeadNowhere) {
  EXPECT_EQ(ErrorOf({Link("self", "self"), Link("a", "b"), Link("b", "a")}), "accepted");
  EXPECT_EQ(ErrorOf({Link("deep", "deep/x/y")}), "accepted");
}

TEST(LinkTest, ALinkCostsOnlySoMuch) {
  std::string names;
  for (int i = 0; i < 2000; ++i) names += "a/";
  std::vector<Entry> entries;
  for (int i = 0; i < 30; ++i) entries.push_back(Link(fmt::format("l{}", i), fmt::format("l{}/../{}", i + 1, names)));
  for (Entry& entry : entries) entry.link_target.resize(std::min<size_t>(entry.link_target.size(), 4095));
  EXPECT_THAT(ErrorOf(entries), HasSubstr("too many names"));
}

TEST(SizeTest, TheLargestFilesAreNamed) {
  Limits limits;
  limits.max_bytes = 4096;
  std::vector<Entry> entries = {File("small", std::string(10, 'x')), Dir("sub"),
                                File("sub/large", std::string(5000, 'x')), File("medium", std::string(2000, 'x'))};
  const std::string error(Message(CheckSize(entries, limits)));
  EXPECT_THAT(error, HasSubstr("'sub/large' (4.9 KiB), 'medium' (2.0 KiB), 'small' (10 B)"));
  EXPECT_THAT(error, HasSubstr("holds 6.8 KiB, a snapshot at most 4.0 KiB"));
}

TEST(SizeTest, EntriesBytesAndTextAreLimited) {
  Limits limits;
  limits.max_entries = 2;
  EXPECT_TRUE(CheckSize({File("a"), File("b")}, limits).ok());
  EXPECT_THAT(std::string(Message(CheckSize({File("a"), File("b"), Dir("c")}, limits))), HasSubstr("more than the 2"));
  limits = Limits();
  Entry huge = File("a");
  huge.bytes = std::numeric_limits<int64_t>::max();
  EXPECT_FALSE(CheckSize({huge, huge}, limits).ok()) << "a sum that overflows";
  limits.max_entries = 1'000'000;
  const std::vector<Entry> wordy(20'000, Dir(std::string(4000, 'a')));
  EXPECT_THAT(std::string(Message(CheckSize(wordy, limits))), HasSubstr("64.0 MiB together"));
}

}  // namespace
}  // namespace tp::snapshot
