#include "launch/record.h"

#include <random>

#include <gtest/gtest.h>

namespace tp::launch {
namespace {

constexpr RankName kName = {"tp-lab-e1-7-s0-a1", 0, 3};

std::string Record(std::string_view fields) { return "tp-record 1\n" + std::string(fields) + "end\n"; }

std::string OfRank(std::string_view fields) {
  return Record("key=tp-lab-e1-7-s0-a1\nnonce=abc\npool=0\nrank=3\nhost=n1\nboot_id=b-1\n" + std::string(fields));
}

constexpr std::string_view kEnded =
    "started_boot_us=10\nstarted_unix_us=1000\nended_boot_us=20\nended_unix_us=1010\nexit=exited\ncode=0\n"
    "term_signal=0\nsignalled=no\nsignalled_by=\n";

TEST(AttemptClaim, NamesItsOwner) {
  EXPECT_EQ(ParseAttemptClaim(OfRank("owner=launch\nrandom=r\n"), kName.key),
            (AttemptClaim{.fenced = false, .nonce = "abc"}));
  EXPECT_EQ(ParseAttemptClaim(RenderFenceClaim(kName.key, "n1", "b-1"), kName.key),
            (AttemptClaim{.fenced = true, .nonce = ""}));
}

TEST(AttemptClaim, OfAnotherAttemptOrOwnerIsNone) {
  EXPECT_EQ(ParseAttemptClaim(OfRank("owner=launch\n"), "tp-lab-e1-7-s0-a2"), std::nullopt);
  EXPECT_EQ(ParseAttemptClaim(OfRank("owner=somebody\n"), kName.key), std::nullopt);
  EXPECT_EQ(ParseAttemptClaim(Record("key=tp-lab-e1-7-s0-a1\nowner=launch\n"), kName.key), std::nullopt);
}

TEST(RankClaim, IdentifiesTheRunner) {
  const auto claim = ParseRankClaim(OfRank("runner_pid=42\nrunner_start_ticks=99\ncgroup=/cg/0-3\n"), kName);
  ASSERT_TRUE(claim);
  EXPECT_EQ(*claim, (RankClaim{"abc", "n1", "b-1", 42, 99, "/cg/0-3"}));
  EXPECT_FALSE(ParseRankClaim(OfRank("runner_pid=0\nrunner_start_ticks=99\n"), kName));
  EXPECT_FALSE(ParseRankClaim(OfRank("runner_pid=99999999999\nrunner_start_ticks=99\n"), kName));
}

TEST(StartRecord, IsReadFromStartAndEnd) {
  const StartRecord expected{"abc", {"n1", "b-1", 10, 1000}, 10000};
  EXPECT_EQ(ParseStartRecord(OfRank("started_boot_us=10\nstarted_unix_us=1000\nprecision_us=10000\n"), kName),
            expected);
  ASSERT_TRUE(ParseStartRecord(OfRank(kEnded), kName));
  EXPECT_EQ(ParseStartRecord(OfRank(kEnded), kName)->at, expected.at);
}

TEST(StartRecord, OfAJobThatNeverStartedIsNone) {
  EXPECT_FALSE(ParseStartRecord(OfRank("started_boot_us=10\nstarted_unix_us=1000\nexit=not_started\n"), kName));
}

TEST(EndRecord, TellsExitAndSignalApart) {
  const auto exited = ParseEndRecord(OfRank(kEnded), kName);
  ASSERT_TRUE(exited);
  EXPECT_TRUE(exited->clean());
  EXPECT_FALSE(exited->signalled());
  EXPECT_EQ(exited->at, (HostStamp{"n1", "b-1", 20, 1010}));
  const auto killed =
      ParseEndRecord(OfRank("ended_boot_us=20\nended_unix_us=1010\nexit=killed\ncode=-1\nterm_signal=9\n"
                            "signalled=yes\nsignalled_by=tpd\noom_kills=1\nlog_bytes=7\n"),
                     kName);
  ASSERT_TRUE(killed);
  EXPECT_EQ(killed->exit, ExitKind::kKilled);
  EXPECT_EQ(killed->term_signal, 9);
  EXPECT_EQ(killed->signalled_by, SignalledBy::kTpd);
  EXPECT_EQ(killed->oom_kills, 1);
  EXPECT_EQ(killed->log_bytes, 7);
}

TEST(EndRecord, OfAFailedExecNamesTheErrno) {
  const auto record = ParseEndRecord(OfRank("ended_boot_us=20\nended_unix_us=1010\nexit=not_started\ncode=127\n"
                                            "term_signal=0\nerrno_name=ENOENT\nsignalled=no\n"),
                                     kName);
  ASSERT_TRUE(record);
  EXPECT_EQ(record->exit, ExitKind::kNotStarted);
  EXPECT_EQ(record->start_error, "ENOENT");
}

TEST(EndRecord, ThatContradictsItselfIsNone) {
  const auto with = [](std::string_view exit) {
    return ParseEndRecord(OfRank("ended_boot_us=20\nended_unix_us=1010\nsignalled=no\n" + std::string(exit)), kName);
  };
  EXPECT_TRUE(with("exit=exited\ncode=3\nterm_signal=0\n"));
  EXPECT_FALSE(with("exit=exited\ncode=3\nterm_signal=9\n"));
  EXPECT_FALSE(with("exit=exited\ncode=256\nterm_signal=0\n"));
  EXPECT_FALSE(with("exit=killed\ncode=-1\nterm_signal=0\n"));
  EXPECT_FALSE(with("exit=vanished\ncode=0\nterm_signal=0\n"));
  EXPECT_FALSE(with("exit=exited\nterm_signal=0\n"));
  EXPECT_FALSE(with("exit=exited\ncode=0x0\nterm_signal=0\n"));
}

TEST(EndRecord, WithoutAWordOnSignalsIsNone) {
  EXPECT_FALSE(
      ParseEndRecord(OfRank("ended_boot_us=20\nended_unix_us=1010\nexit=exited\ncode=0\nterm_signal=0\n"), kName));
}

TEST(Heartbeat, HasFixedWidthNumbers) {
  const auto beat = ParseHeartbeat(
      OfRank("count=00000000000000000012\nbeat_boot_us=00000000000000000030\nbeat_unix_us=00000000000000001020\n"),
      kName);
  ASSERT_TRUE(beat);
  EXPECT_EQ(beat->nonce, "abc");
  EXPECT_EQ(beat->heartbeat, (Heartbeat{12, {"n1", "b-1", 30, 1020}}));
}

TEST(AnyRecord, OfAnotherKeyRankOrPoolIsNoEvidence) {
  const std::string record = OfRank(kEnded);
  EXPECT_TRUE(ParseEndRecord(record, kName));
  EXPECT_FALSE(ParseEndRecord(record, {"tp-lab-e2-7-s0-a1", 0, 3}));
  EXPECT_FALSE(ParseEndRecord(record, {kName.key, 1, 3}));
  EXPECT_FALSE(ParseEndRecord(record, {kName.key, 0, 2}));
}

TEST(AnyRecord, TornAtAnyByteIsAbsent) {
  const std::string record = OfRank(kEnded);
  for (size_t size = 0; size < record.size(); ++size) {
    EXPECT_FALSE(ParseEndRecord(std::string_view(record).substr(0, size), kName)) << size;
  }
}

TEST(AnyRecord, WithANameTwiceOrANulIsTorn) {
  EXPECT_FALSE(ParseEndRecord(OfRank(std::string(kEnded) + "code=1\n"), kName));
  EXPECT_FALSE(ParseEndRecord(OfRank(std::string(kEnded) + std::string("colour=\0\n", 9)), kName));
  EXPECT_FALSE(ParseEndRecord(OfRank(kEnded) + std::string(1, '\0'), kName));
}

TEST(AnyRecord, UnknownNamesAreSkipped) {
  EXPECT_TRUE(ParseEndRecord(OfRank(std::string(kEnded) + "colour=red\nlater=\n"), kName));
}

TEST(AnyRecord, OfAnotherVersionOrTooLongIsAbsent) {
  std::string record = OfRank(kEnded);
  record.replace(0, 11, "tp-record 2");
  EXPECT_FALSE(ParseEndRecord(record, kName));
  EXPECT_FALSE(ParseEndRecord(OfRank(std::string(kEnded) + "x=" + std::string(kMaxRecordBytes, 'x') + "\n"), kName));
  std::string many(kEnded);
  for (int i = 0; i < 300; ++i) many += "x" + std::to_string(i) + "=\n";
  EXPECT_FALSE(ParseEndRecord(OfRank(many), kName));
}

// Whatever bytes a job puts under a record's name, reading them is defined.
TEST(AnyRecord, SurvivesMutations) {
  const std::string record =
      OfRank(std::string(kEnded) + "owner=launch\nrunner_pid=1\nrunner_start_ticks=2\ncount=1\n");
  std::mt19937 random(20240607);
  for (int round = 0; round < 5000; ++round) {
    std::string bytes = record;
    for (int change = 0; change < 3; ++change) {
      const size_t at = random() % bytes.size();
      switch (random() % 3) {
        case 0:
          bytes[at] = static_cast<char>(random() % 256);
          break;
        case 1:
          bytes.erase(at, random() % 8);
          break;
        default:
          bytes.insert(at, bytes.substr(random() % bytes.size(), random() % 16));
          break;
      }
      if (bytes.empty()) break;
    }
    if (const auto end = ParseEndRecord(bytes, kName)) {
      EXPECT_FALSE(end->nonce.empty());
      EXPECT_TRUE(!end->clean() || end->term_signal == 0);
    }
    ParseStartRecord(bytes, kName);
    ParseRankClaim(bytes, kName);
    ParseHeartbeat(bytes, kName);
    ParseAttemptClaim(bytes, kName.key);
    ParseKey(bytes);
  }
}

}  // namespace
}  // namespace tp::launch
