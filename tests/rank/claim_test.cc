// Claim and fence: who may run the attempt.
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "harness.h"

namespace tp::rank_test {
namespace {

namespace fs = std::filesystem;

class ClaimTest : public RankTest {};
TP_RANK_FOR_EVERY_KIND(ClaimTest);

std::string Record1(const std::string& lines) { return "tp-record 1\n" + lines + "end\n"; }

std::string KeyLine(const Attempt& attempt) { return "key=" + attempt.key() + "\n"; }

std::set<std::string> List(const fs::path& dir) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(dir)) names.insert(entry.path().filename());
  return names;
}

TEST_P(ClaimTest, OneOfTwoLaunchesRunsOnEveryRank) {
  constexpr int kRanks = 3;
  const int rounds = is_binary() ? 40 : 5;
  for (int round = 0; round < rounds; ++round) {
    Attempt attempt;
    std::vector<Child> runners;
    runners.reserve(2 * kRanks);
    for (int rank = 0; rank < kRanks; ++rank) {
      for (const char* nonce : {"a", "b"}) {
        const Arguments job = Shell(std::string("echo ") + nonce + " >>ran");
        runners.push_back(attempt.Start(GetParam(), job, {.rank = rank, .nonce = nonce, .extra = {}}));
      }
    }
    int ran = 0, refused = 0;
    for (Child& runner : runners) {
      const int code = runner.Wait();
      ran += code == 0;
      refused += code == kNotOwner;
    }
    EXPECT_EQ(ran, kRanks);
    EXPECT_EQ(refused, kRanks);
    const std::string lines = ReadFile(attempt.work() / "ran");
    EXPECT_TRUE(lines == "a\na\na\n" || lines == "b\nb\nb\n") << lines;
  }
}

TEST_P(ClaimTest, OneOfManyProcessesRunsARank) {
  std::vector<Child> runners;
  for (int i = 0; i < 8; ++i) runners.push_back(attempt_.Start(GetParam(), Shell("echo x >>ran")));
  int ran = 0, refused = 0;
  for (Child& runner : runners) {
    const int code = runner.Wait();
    ran += code == 0;
    refused += code == kNotOwner;
  }
  EXPECT_EQ(ran, 1);
  EXPECT_EQ(refused, 7);
  EXPECT_EQ(ReadFile(attempt_.work() / "ran"), "x\n");
}

TEST_P(ClaimTest, FencedAttemptIsLeftAlone) {
  WriteFile(attempt_.dir() / "attempt.claim", Record1(KeyLine(attempt_) + "owner=fence\n"));
  const std::set<std::string> before = List(attempt_.dir());
  EXPECT_EQ(attempt_.Start(GetParam(), Shell("touch ran")).Wait(), kNotOwner);
  EXPECT_EQ(List(attempt_.dir()), before);
  EXPECT_FALSE(attempt_.HasMark("ran"));
}

TEST_P(ClaimTest, ClosedFenceStartsNothing) {
  WriteFile(attempt_.dir() / "fence", "closed\n");
  EXPECT_EQ(attempt_.Start(GetParam(), Shell("touch ran")).Wait(), kNotOwner);
  EXPECT_FALSE(attempt_.HasMark("ran"));
}

TEST_P(ClaimTest, MissingOrBrokenFenceConcludesNothing) {
  fs::remove(attempt_.dir() / "fence");
  EXPECT_EQ(attempt_.Start(GetParam(), Shell("touch ran")).Wait(), kStorage);
  Attempt other;
  WriteFile(other.dir() / "fence", "clo");
  EXPECT_EQ(other.Start(GetParam(), Shell("touch ran")).Wait(), kStorage);
  EXPECT_FALSE(attempt_.HasMark("ran"));
  EXPECT_FALSE(other.HasMark("ran"));
}

TEST_P(ClaimTest, FenceClosedDuringTheRunEndsTheTree) {
  Child runner = attempt_.Start(GetParam(),
                                Shell("trap '' TERM; (trap '' TERM; exec setsid sleep 60) & echo $! >child;"
                                      " touch ready; while :; do sleep 0.1; done"),
                                {.extra = {"--heartbeat-ms", "20"}});
  ASSERT_TRUE(attempt_.WaitForMark("ready"));
  WriteFile(attempt_.dir() / "fence", "closed\n");
  EXPECT_EQ(runner.Wait(), 137);
  EXPECT_FALSE(IsRunning(std::stoi(ReadFile(attempt_.work() / "child"))));
  EXPECT_TRUE(attempt_.Exit().at("signals").starts_with("KILL:tpd:"));
}

TEST_P(ClaimTest, HostileAttemptClaimConcludesNothing) {
  const std::string nonce_line = "nonce=nonce-1\n";
  const std::vector<std::string> contents = {
      "",
      "\n",
      "tp-record 1\n",
      "tp-record 2\n" + KeyLine(attempt_) + nonce_line + "owner=launch\nend\n",
      "tp-record 1\n" + KeyLine(attempt_) + nonce_line + "owner=launch\n",
      Record1("key=tp-test-e1-7-s0-a2\n" + nonce_line + "owner=launch\n"),
      Record1("key=\n" + nonce_line + "owner=launch\n"),
  };
  for (const std::string& content : contents) {
    WriteFile(attempt_.dir() / "attempt.claim", content);
    EXPECT_EQ(attempt_.Start(GetParam(), Shell("touch ran")).Wait(), kStorage) << content;
    EXPECT_EQ(ReadFile(attempt_.dir() / "attempt.claim"), content);
  }
  EXPECT_FALSE(attempt_.HasMark("ran"));
}

TEST_P(ClaimTest, AnotherNonceIsNotTakenForOurs) {
  for (const char* nonce : {"nonce-2", "nonce-", "nonce-11", "", "NONCE-1", " nonce-1"}) {
    WriteFile(attempt_.dir() / "attempt.claim", Record1(KeyLine(attempt_) + "nonce=" + nonce + "\nowner=launch\n"));
    EXPECT_EQ(attempt_.Start(GetParam(), Shell("touch ran")).Wait(), kNotOwner) << nonce;
  }
  EXPECT_FALSE(attempt_.HasMark("ran"));
}

TEST_P(ClaimTest, HostileRankClaimConcludesNothing) {
  for (const std::string& content :
       {std::string(), std::string("tp-record 1\nrandom=x\n"), Record1("key=other\nrandom=x\n")}) {
    WriteFile(attempt_.File(".claim"), content);
    EXPECT_EQ(attempt_.Start(GetParam(), Shell("touch ran")).Wait(), kStorage) << content;
  }
  EXPECT_FALSE(attempt_.HasMark("ran"));
}

TEST(ClaimBinaryTest, ClaimThatIsNoCleanFileConcludesNothing) {
  using Spoil = void (*)(const fs::path& claim, const std::string& key_line);
  const std::vector<Spoil> spoils = {
      [](const fs::path& claim, const std::string&) { fs::create_directory(claim); },
      [](const fs::path& claim, const std::string&) { ASSERT_EQ(mkfifo(claim.c_str(), 0600), 0); },
      [](const fs::path& claim, const std::string&) { fs::create_symlink("nowhere", claim); },
      [](const fs::path& claim, const std::string&) { fs::create_symlink("/dev/zero", claim); },
      [](const fs::path& claim, const std::string&) { WriteFile(claim, std::string(1 << 20, 'x')); },
      [](const fs::path& claim, const std::string& key_line) {
        WriteFile(claim, Record1(key_line + "nonce=other\nnonce=nonce-1\nowner=launch\n"));
      },
      [](const fs::path& claim, const std::string& key_line) {
        WriteFile(claim, Record1(key_line + "nonce=nonce-1\nowner=launch\nend\n"));
      },
      [](const fs::path& claim, const std::string& key_line) {
        WriteFile(claim, Record1(key_line + std::string("nonce=nonce-1\0x\nowner=launch\n", 29)));
      },
  };
  for (size_t i = 0; i < spoils.size(); ++i) {
    Attempt attempt;
    spoils[i](attempt.dir() / "attempt.claim", KeyLine(attempt));
    EXPECT_EQ(attempt.Start(RunnerKind::kBinary, Shell("touch ran")).Wait(), kStorage) << i;
    EXPECT_FALSE(attempt.HasMark("ran")) << i;
  }
}

TEST_P(ClaimTest, ClaimOfAnotherRankOfThisLaunchIsOurs) {
  WriteFile(attempt_.dir() / "attempt.claim", Record1(KeyLine(attempt_) + "nonce=nonce-1\nowner=launch\nnews=1\n"));
  EXPECT_EQ(attempt_.Start(GetParam(), Shell("touch ran")).Wait(), 0);
}

}  // namespace
}  // namespace tp::rank_test
