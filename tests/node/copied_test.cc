// The parts of copied storage that need no machine: what is remembered of a launch, the programs for machines run by
// this one's shells, what is taken from their answers, and rsync against this machine itself.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/escaping.h"
#include "absl/time/clock.h"
#include "backends/node/copied/attempt_mirror.h"
#include "backends/node/copied/copy_job.h"
#include "backends/node/copied/handover.h"
#include "backends/node/copied/log_mirror.h"
#include "backends/node/copied/mirror_script.h"
#include "backends/node/copied/pending_launch.h"
#include "backends/node/copied/rsync_copier.h"
#include "backends/node/host_reply.h"
#include "base/random.h"
#include "base/subprocess.h"
#include "launch/record.h"
#include "tests/launch/temp_dir.h"

namespace tp::node {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::tp::testing::ReadText;
using ::tp::testing::TempDir;
using ::tp::testing::WriteText;
namespace fs = std::filesystem;

constexpr char kKey[] = "tp-t-e1-1-s0-a1";

// --- Handover -------------------------------------------------------------------------------------------

TEST(Handover, IsReadAsItWasWritten) {
  const Handover handover{kKey, "nonce-1", 1 << 20, {{"node 1", "boot-1", 160}, {"node2", "boot-2", 7}}};
  EXPECT_EQ(ParseHandover(RenderHandover(handover)), handover);
}

TEST(Handover, EveryTornOneIsNone) {
  const std::string whole = RenderHandover({kKey, "nonce-1", 5, {{"node1", "boot-1", 160}}});
  for (size_t length = 0; length < whole.size(); ++length) {
    EXPECT_FALSE(ParseHandover(whole.substr(0, length))) << length;
  }
  EXPECT_FALSE(ParseHandover(whole + "more\n"));
}

TEST(Handover, TheFirstOneStays) {
  TempDir dir;
  const std::string attempt = dir.At("ada/train-1/attempts/train-1");
  ASSERT_FALSE(*ReadHandover(attempt));
  for (const char* nonce : {"nonce-1", "nonce-2", ""}) {
    const auto made = MakeHandover(attempt, dir.path(), {kKey, nonce, 0});
    ASSERT_TRUE(made.ok()) << made.status();
    EXPECT_EQ(made->nonce, "nonce-1");
  }
  // Only who made it takes it back.
  ASSERT_TRUE(TakeHandoverBack(attempt, "nonce-2").ok());
  EXPECT_EQ((*ReadHandover(attempt))->nonce, "nonce-1");
  ASSERT_TRUE(TakeHandoverBack(attempt, "nonce-1").ok());
  EXPECT_FALSE(*ReadHandover(attempt));
  EXPECT_EQ(MakeHandover(attempt, dir.path(), {kKey, "", 0})->nonce, "");
}

TEST(Handover, OneOfManyAtOnceHasIt) {
  TempDir dir;
  const std::string attempt = dir.At("ada/train-1/attempts/train-1");
  std::vector<std::string> found(8);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < found.size(); ++i) {
    threads.emplace_back([&, i] {
      const auto made = MakeHandover(attempt, dir.path(), {kKey, fmt::format("nonce-{}", i), 0});
      if (made.ok()) found[i] = made->nonce;
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& each : found) EXPECT_EQ(each, found[0]);
}

TEST(Handover, WhatIsTornOrOfAnotherAttemptIsNoAnswer) {
  TempDir dir;
  const std::string attempt = dir.At("ada/train-1/attempts/train-1");
  WriteText(attempt + "/handover", "tp-handover 1\nkey=");
  EXPECT_FALSE(ReadHandover(attempt).ok());
  WriteText(attempt + "/handover", RenderHandover({"tp-t-e1-2-s0-a1", "nonce-1", 0}));
  EXPECT_FALSE(MakeHandover(attempt, dir.path(), {kKey, "", 0}).ok());
}

// --- Pending launches -----------------------------------------------------------------------------------

LaunchSpec PendingSpec() {
  LaunchSpec spec;
  spec.key = kKey;
  spec.nonce = "nonce-1";
  spec.owner = "ada";
  spec.run_id = "train-1";
  spec.paths = {"/s/ada/train-1/attempts/train-1", "/s/ada/train-1/attempts/train-1/work", "/s/ada/train-1/output",
                "/s/ada/train-1/results/train"};
  std::string bytes;
  for (int byte = 0; byte < 256; ++byte) bytes += static_cast<char>(byte);
  spec.argv = {"program", bytes, ""};
  spec.log_max_bytes = 1 << 30;
  spec.heartbeat_ms = 10'000;
  for (int rank = 0; rank < 2; ++rank) {
    RankLaunch launch;
    launch.rank = rank;
    launch.placement = {fmt::format("node{}", rank), "10.0.0.1", {}};
    launch.env = {{"HOSTILE", bytes}, {"EMPTY", ""}};
    spec.ranks.push_back(launch);
  }
  return spec;
}

TEST(PendingLaunch, AnyBytesComeBack) {
  const LaunchSpec spec = PendingSpec();
  const std::string bytes = RenderPendingLaunch(spec);
  EXPECT_EQ(ParsePendingLaunch(bytes), spec);
  for (size_t length = 0; length < bytes.size(); length += 7) {
    EXPECT_FALSE(ParsePendingLaunch(bytes.substr(0, length))) << length;
  }
  EXPECT_FALSE(ParsePendingLaunch(bytes + "x"));
}

TEST(PendingLaunch, IsFoundByKeyAndNonceAndReadByNobodyElse) {
  TempDir dir;
  const std::string place = dir.At("node-launches");
  const LaunchSpec spec = PendingSpec();
  EXPECT_FALSE(*FindPendingLaunch(place, kKey, "nonce-1"));
  ASSERT_TRUE(KeepPendingLaunch(place, spec).ok());
  EXPECT_EQ(*FindPendingLaunch(place, kKey, "nonce-1"), spec);
  EXPECT_FALSE(*FindPendingLaunch(place, kKey, "nonce-2"));
  struct stat about {};
  ASSERT_EQ(stat(fmt::format("{}/{}", place, kKey).c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 077, 0u);
  ForgetPendingLaunch(place, kKey);
  EXPECT_FALSE(*FindPendingLaunch(place, kKey, "nonce-1"));
}

TEST(PendingLaunch, RandomBytesAreNone) {
  Random random(3);
  for (int round = 0; round < 2000; ++round) {
    std::string bytes = "tp-pending 1\n";
    for (int64_t i = random.Between(0, 60); i > 0; --i) bytes += static_cast<char>(random.Between('0', ':'));
    EXPECT_FALSE(ParsePendingLaunch(bytes));
  }
}

// --- Programs -------------------------------------------------------------------------------------------

HostReply Answer(const std::string& program) {
  const auto result = RunCommand({.argv = {"/bin/sh", "-c", program},
                                  .env = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/nonexistent", "LC_ALL=C"},
                                  .stdin_bytes = {},
                                  .max_output_bytes = 8 << 20},
                                 absl::Now() + absl::Seconds(60));
  EXPECT_TRUE(result.ok()) << result.status();
  const auto reply = ParseReply(result->out);
  EXPECT_TRUE(reply) << result->out << result->err;
  return reply.value_or(HostReply{});
}

std::vector<Piece> PiecesFrom(const MirrorQuestion& question) {
  std::vector<Piece> pieces;
  const HostReply reply =
      Answer(LookProgram({"any", std::string(64, '0')}, {}, false, "t") + MirrorProgram({question}));
  for (const std::string& line : reply.copies) {
    const auto piece = ParsePiece(line);
    EXPECT_TRUE(piece) << line.substr(0, 80);
    if (piece) pieces.push_back(*piece);
  }
  EXPECT_EQ(reply.words, "");
  return pieces;
}

std::string LogBytes(const std::vector<Piece>& pieces, int64_t* begin = nullptr, int64_t* offset = nullptr) {
  for (const Piece& piece : pieces) {
    if (piece.kind != PieceKind::kLog) continue;
    if (begin != nullptr) *begin = piece.begin;
    if (offset != nullptr) *offset = piece.offset;
    return piece.bytes;
  }
  return "";
}

TEST(MirrorProgram, BringsWhatIsAskedForAndNothingElse) {
  TempDir dir;
  const std::string attempt = dir.At("a b'c\"$(touch x)");
  for (const char* name : {"attempt.claim", "0-1.claim", "0-1.started", "0-1.exit", "0-1.heartbeat", "0-0.claim"}) {
    WriteText(fmt::format("{}/{}", attempt, name), name);
  }
  WriteText(attempt + "/metrics.jsonl", "{}\n");
  MirrorQuestion question{.id = 7, .attempt_dir = attempt, .pool = 0, .rank = 1};
  EXPECT_THAT(PiecesFrom(question), IsEmpty());
  question.attempt_claim = question.claim = question.started = question.ended = question.heartbeat = true;
  question.metrics_offset = 0;
  const std::vector<Piece> pieces = PiecesFrom(question);
  ASSERT_THAT(pieces, SizeIs(6));
  const std::vector<std::pair<PieceKind, std::string>> expected = {
      {PieceKind::kAttemptClaim, "attempt.claim"}, {PieceKind::kClaim, "0-1.claim"},
      {PieceKind::kStarted, "0-1.started"},        {PieceKind::kEnded, "0-1.exit"},
      {PieceKind::kHeartbeat, "0-1.heartbeat"},    {PieceKind::kMetrics, "{}\n"}};
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(pieces[i].id, 7u);
    EXPECT_EQ(pieces[i].kind, expected[i].first);
    EXPECT_EQ(pieces[i].bytes, expected[i].second);
  }
}

TEST(MirrorProgram, FollowsNoLinkAndBringsNoMoreThanARecord) {
  TempDir dir;
  WriteText(dir.At("secret"), "secret");
  fs::create_symlink(dir.At("secret"), dir.At("0-0.log"));
  fs::create_symlink(dir.At("secret"), dir.At("0-0.claim"));
  WriteText(dir.At("0-0.exit"), std::string(100'000, 'x'));
  const std::vector<Piece> pieces = PiecesFrom({.attempt_dir = dir.path(), .claim = true, .ended = true});
  ASSERT_THAT(pieces, SizeIs(1));
  EXPECT_EQ(pieces[0].kind, PieceKind::kEnded);
  EXPECT_EQ(pieces[0].bytes.size(), 16u * 1024);
}

TEST(MirrorProgram, ALogGoesOnAcrossSegments) {
  TempDir dir;
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes += static_cast<char>(i);
  WriteText(dir.At("0-0.log.00000000000000000100"), bytes);             // 100 to 356
  WriteText(dir.At("0-0.log.00000000000000000356"), "second segment");  // to 370
  WriteText(dir.At("0-0.log"), "current");
  WriteText(dir.At("0-0.log.no-segment"), "x");
  int64_t begin = 0;
  int64_t offset = 0;
  const auto ask = [&](int64_t from) {
    return LogBytes(PiecesFrom({.attempt_dir = dir.path(), .log_offset = from}), &begin, &offset);
  };
  EXPECT_EQ(ask(0), bytes) << "older ones are gone";
  EXPECT_EQ(begin, 100);
  EXPECT_EQ(offset, 100);
  EXPECT_EQ(ask(350), bytes.substr(250));
  EXPECT_EQ(begin, 100);
  EXPECT_EQ(offset, 350);
  EXPECT_EQ(ask(356), "second segment");
  EXPECT_EQ(ask(370), "current");
  EXPECT_EQ(begin, 370);
  EXPECT_EQ(offset, 370);
  EXPECT_EQ(ask(373), "rent");
  EXPECT_EQ(ask(377), "");
}

TEST(MirrorProgram, WhatOneLookBringsIsBounded) {
  TempDir dir;
  WriteText(dir.At("0-0.log"), std::string(8 << 20, 'x'));
  EXPECT_EQ(LogBytes(PiecesFrom({.attempt_dir = dir.path()})).size(), 2u << 20);
}

TEST(MirrorProgram, AFileThatWasBegunAnewIsBroughtFromItsBeginning) {
  TempDir dir;
  WriteText(dir.At("metrics.jsonl"), "short");
  const auto pieces = PiecesFrom({.attempt_dir = dir.path(), .metrics_offset = 100});
  ASSERT_THAT(pieces, SizeIs(1));
  EXPECT_EQ(pieces[0].offset, 0);
  EXPECT_EQ(pieces[0].bytes, "short");
}

TEST(ParsePiece, WhatIsNotUnderstoodIsLeftOut) {
  const std::string record(launch::kMaxRecordBytes + 1, 'x');
  std::string encoded;
  absl::Base64Escape(record, &encoded);
  for (const std::string& line :
       {std::string(), std::string("1"), std::string("1 claim"), std::string("x claim eA=="),
        std::string("-1 claim eA=="), std::string("1 passwd eA=="), std::string("1 claim !!"),
        std::string("1 log 5 3 eA=="), std::string("1 log -5 3 eA=="), std::string("1 log 5 eA=="),
        std::string("1 metrics 0 99999999999999999999 eA=="), "1 claim " + encoded}) {
    EXPECT_FALSE(ParsePiece(line)) << line.substr(0, 60);
  }
  EXPECT_TRUE(ParsePiece("1 log 3 5 eA=="));
}

TEST(CopyInProgram, MakesTheRunsDirectoriesAndTellsWhatElseIsThere) {
  TempDir dir;
  const CopyInPlace place{dir.path(), dir.At("ada/it's-1/attempts/train-2"), dir.At("ada/it's-1/results/train"),
                          "token", "mark"};
  HostReply reply = Answer(CopyInProgram(place));
  EXPECT_EQ(reply.storage, "ok");
  EXPECT_EQ(reply.words, "others 0 0");
  EXPECT_TRUE(fs::is_directory(place.results_dir));
  EXPECT_EQ(ReadText(place.attempt_dir + "/fence"), "open\n");
  // Its step's earlier attempts are over; later ones, other steps and what is no attempt are not its business.
  for (const char* name : {"train-1", "train-10", "train-x", "other-1", "train-a-1"}) {
    fs::create_directories(dir.At(fmt::format("ada/it's-1/attempts/{}", name)));
  }
  WriteText(dir.At("ada/it's-1/output/model"), "x");
  WriteText(place.attempt_dir + "/fence", "closed\n");
  reply = Answer(CopyInProgram(place));
  EXPECT_EQ(reply.words, "others 4 1");
  EXPECT_FALSE(fs::exists(dir.At("ada/it's-1/attempts/train-1")));
  EXPECT_EQ(ReadText(place.attempt_dir + "/fence"), "closed\n") << "a closed fence stays closed";
}

TEST(CopyInProgram, StorageThatIsSharedOrMissingIsSaidToBe) {
  TempDir dir;
  const CopyInPlace place{dir.path(), dir.At("ada/train-1/attempts/train-1"), dir.At("ada/train-1/results/train"),
                          "token", "mark"};
  WriteText(place.attempt_dir + "/.shared.token", "token");
  EXPECT_EQ(Answer(CopyInProgram(place)).storage, "shared");
  const CopyInPlace none{dir.At("none"), dir.At("none/ada/t-1/attempts/t-1"), dir.At("none/ada/t-1/results/t"), "token",
                         "mark"};
  EXPECT_EQ(Answer(CopyInProgram(none)).storage, "noroot");
}

TEST(CopyInProgram, EndsWhatAnEarlierCopyOfTheStepLeftRunning) {
  TempDir dir;
  const std::string mark = RandomName();
  std::thread old([&] {
    const auto result = RunCommand({.argv = {"/bin/sleep", "30"}, .env = {"TP_COPY_MARK=" + mark}, .stdin_bytes = {}},
                                   absl::Now() + absl::Seconds(40));
    EXPECT_TRUE(result.ok() && result->term_signal == SIGKILL);
  });
  absl::SleepFor(absl::Milliseconds(300));
  const absl::Time began = absl::Now();
  const CopyInPlace place{dir.path(), dir.At("ada/t-1/attempts/t-1"), dir.At("ada/t-1/results/t"), "token", mark};
  EXPECT_EQ(Answer(CopyInProgram(place)).storage, "ok");
  old.join();
  EXPECT_LT(absl::Now() - began, absl::Seconds(20));
}

TEST(CopyOutProgram, MakesReadableWhatTheJobLeftAndCountsIt) {
  TempDir dir;
  const std::string attempt = dir.At("attempts/train-1");
  WriteText(dir.At("output/old"), "xxxx");
  WriteText(attempt + "/0-0.claim", "");
  absl::SleepFor(absl::Milliseconds(50));
  WriteText(dir.At("output/deep/new"), "12345");
  fs::create_directories(dir.At("results"));
  chmod(dir.At("output/deep/new").c_str(), 0);
  EXPECT_EQ(Answer(CopyOutProgram(attempt, 0, 0)).words, "ready 5");
  struct stat about {};
  ASSERT_EQ(stat(dir.At("output/deep/new").c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777, 0400u);
  EXPECT_EQ(Answer(CopyOutProgram(dir.At("attempts/none"), 0, 0)).words, "gone");
}

TEST(HostFenceProgram, LinksTheClaimOnceAndTellsWhoseItIs) {
  TempDir dir;
  const std::string attempt = dir.At("ada/t-1/attempts/t-1");
  const auto claim_of = [&](const std::string& claim) {
    const HostReply reply = Answer(HostFenceProgram(3, attempt, claim));
    const auto piece = reply.copies.empty() ? std::nullopt : ParsePiece(reply.copies[0]);
    return piece ? piece->bytes : "";
  };
  EXPECT_EQ(claim_of("it's a\nclaim\n"), "it's a\nclaim\n");
  EXPECT_EQ(claim_of("another"), "it's a\nclaim\n");
  for (const auto& entry : fs::directory_iterator(attempt)) EXPECT_EQ(entry.path().filename(), "attempt.claim");
}

TEST(RemoveCopyProgram, TheLastAttemptTakesTheOutputAlong) {
  TempDir dir;
  const std::string run = dir.At("ada/t-1");
  WriteText(run + "/attempts/t-1/work/x", "x");
  WriteText(run + "/attempts/other-1/work/x", "x");
  WriteText(run + "/output/model", "x");
  EXPECT_EQ(Answer(RemoveCopyProgram(dir.path(), run + "/attempts/t-1")).words, "removed");
  EXPECT_FALSE(fs::exists(run + "/attempts/t-1"));
  EXPECT_TRUE(fs::exists(run + "/output/model")) << "another attempt may be at it";
  EXPECT_EQ(Answer(RemoveCopyProgram(dir.path(), run + "/attempts/other-1")).words, "removed");
  EXPECT_FALSE(fs::exists(dir.At("ada")));
  EXPECT_TRUE(fs::exists(dir.path()));
  EXPECT_EQ(Answer(RemoveCopyProgram(dir.path(), run + "/attempts/t-1")).words, "removed");
}

// --- Mirrors --------------------------------------------------------------------------------------------

// As readers find it: segments by their names, the current file behind the newest.
std::string Stream(const std::string& directory, const std::string& log, int64_t* begin) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(directory)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(log + ".")) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  std::string stream;
  *begin = -1;
  for (const std::string& name : names) {
    const std::string bytes = ReadText(directory + "/" + name);
    const int64_t at = std::stoll(name.substr(log.size() + 1));
    if (*begin < 0 || stream.empty()) *begin = at;
    EXPECT_TRUE(bytes.empty() || at == *begin + static_cast<int64_t>(stream.size())) << name;
    stream += bytes;
  }
  *begin = std::max<int64_t>(*begin, 0);
  return stream + ReadText(directory + "/" + log);
}

TEST(LogMirror, RandomPiecesOfARotatedLogComeToTheSameStream) {
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    Random random(seed);
    TempDir there;
    TempDir here;
    std::string written;
    int64_t current_begin = 0;
    auto mirror = std::make_unique<LogMirror>("0-0.log", 1 << 20);
    for (int step = 0; step < 50; ++step) {
      if (random.Chance(500)) {
        const std::string more(static_cast<size_t>(random.Between(1, 200)), static_cast<char>('a' + step % 26));
        written += more;
        std::ofstream(there.At("0-0.log"), std::ios::app) << more;
      }
      if (random.Chance(150) && fs::exists(there.At("0-0.log"))) {
        fs::rename(there.At("0-0.log"), there.At(fmt::format("0-0.log.{:020}", current_begin)));
        current_begin = static_cast<int64_t>(written.size());
      }
      if (random.Chance(60)) mirror = std::make_unique<LogMirror>("0-0.log", 1 << 20);  // tpd restarts
      if (!random.Chance(300)) continue;
      const auto directory = OpenDirectory(here.path());
      const auto end = mirror->End(*directory);
      ASSERT_TRUE(end.ok());
      for (const Piece& piece : PiecesFrom({.attempt_dir = there.path(), .log_offset = *end})) {
        // A look that came late says again what is known.
        for (int times = random.Chance(200) ? 2 : 1; times > 0; --times) {
          ASSERT_TRUE(mirror->Append(*directory, piece.begin, piece.offset, piece.bytes).ok());
        }
      }
      int64_t begin = 0;
      const std::string stream = Stream(here.path(), "0-0.log", &begin);
      EXPECT_EQ(begin, 0);
      EXPECT_EQ(stream, written.substr(0, stream.size())) << "seed " << seed;
    }
  }
}

TEST(LogMirror, BytesThatWereRotatedAwayLeaveAGapAndNoFalsePlace) {
  TempDir dir;
  const auto directory = OpenDirectory(dir.path());
  LogMirror mirror("0-0.log", 1 << 20);
  ASSERT_TRUE(mirror.Append(*directory, 0, 0, "first").ok());
  ASSERT_TRUE(mirror.Append(*directory, 100, 100, "later").ok());
  EXPECT_EQ(*mirror.End(*directory), 105);
  EXPECT_EQ(*LogMirror("0-0.log", 1 << 20).End(*directory), 105);
  EXPECT_EQ(ReadText(dir.At("0-0.log")), "later");
  EXPECT_TRUE(fs::exists(dir.At("0-0.log.00000000000000000100")));
  EXPECT_EQ(ReadText(dir.At("0-0.log.00000000000000000000")), "first");
}

TEST(LogMirror, WhatDoesNotFitIsLeftOut) {
  TempDir dir;
  const auto directory = OpenDirectory(dir.path());
  LogMirror mirror("0-0.log", 1 << 20);
  ASSERT_TRUE(mirror.Append(*directory, 0, 0, "first").ok());
  for (const auto& [begin, offset] :
       std::vector<std::pair<int64_t, int64_t>>{{0, 0}, {0, 4}, {0, 6}, {3, 5}, {3, 3}, {5, 6}, {100, 101}}) {
    ASSERT_TRUE(mirror.Append(*directory, begin, offset, "x").ok());
    EXPECT_EQ(*mirror.End(*directory), 5) << begin << " " << offset;
  }
}

TEST(LogMirror, TheOldestSegmentsGoAboveTheCap) {
  TempDir dir;
  const auto directory = OpenDirectory(dir.path());
  LogMirror mirror("0-0.log", 1000);
  for (int64_t segment = 0; segment < 20; ++segment) {
    ASSERT_TRUE(mirror.Append(*directory, segment * 250, segment * 250, std::string(250, 'x')).ok());
  }
  EXPECT_LE(std::distance(fs::directory_iterator(dir.path()), {}), 5);
  EXPECT_EQ(*mirror.End(*directory), 5000);
}

TEST(TailMirror, GoesOnOrBeginsAnew) {
  TempDir dir;
  const auto directory = OpenDirectory(dir.path());
  TailMirror mirror("metrics.jsonl", 100);
  ASSERT_TRUE(mirror.Append(*directory, 0, "one\n").ok());
  ASSERT_TRUE(mirror.Append(*directory, 4, "two\n").ok());
  ASSERT_TRUE(mirror.Append(*directory, 99, "x").ok());
  EXPECT_EQ(ReadText(dir.At("metrics.jsonl")), "one\ntwo\n");
  ASSERT_TRUE(mirror.Append(*directory, 0, "new\n").ok());
  EXPECT_EQ(ReadText(dir.At("metrics.jsonl")), "new\n");
  EXPECT_EQ(*mirror.End(*directory), 4);
  ASSERT_TRUE(mirror.Append(*directory, 4, std::string(200, 'x')).ok());
  EXPECT_EQ(*mirror.End(*directory), 4) << "no host fills tpd's disk with one file";
}

class Mirror : public ::testing::Test {
 protected:
  std::string Record(const std::string& rest, const std::string& nonce = "nonce-1", int rank = 0) const {
    return fmt::format("tp-record 1\nkey={}\nnonce={}\npool=0\nrank={}\nhost=node1\nboot_id=boot-1\n{}end\n", kKey,
                       nonce, rank, rest);
  }
  std::string Runner() const { return "runner=tp-rank\nrunner_pid=7\nrunner_start_ticks=9\ncgroup=\n"; }
  std::string End(int code, int64_t log_bytes) const {
    return Record(
        fmt::format("{}pid=9\npid_start_ticks=9\nstarted_boot_us=5\nstarted_unix_us=5\nended_boot_us=9\n"
                    "ended_unix_us=9\nexit=exited\ncode={}\nterm_signal=0\nsignalled=no\nsignalled_by=\n"
                    "log_bytes={}\n",
                    Runner(), code, log_bytes));
  }
  void Take(PieceKind kind, const std::string& bytes, size_t rank = 0) {
    const absl::Status taken = mirror_.Take(rank, {{.id = 0, .kind = kind, .bytes = bytes}});
    EXPECT_TRUE(taken.ok()) << taken;
  }
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(dir_.path())) names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
  }

  TempDir dir_;
  AttemptMirror mirror_{{kKey, "nonce-1", dir_.path(), {2}}, {kKey, "nonce-1", 1 << 20}};
};

TEST_F(Mirror, TakesTheRecordsOfItsLaunchAndRankAlone) {
  Take(PieceKind::kClaim, Record(Runner(), "nonce-2"));
  Take(PieceKind::kClaim, Record(Runner(), "nonce-1", 1));
  Take(PieceKind::kClaim, "tp-record 1\nkey=");
  Take(PieceKind::kStarted, Record("started_boot_us=5\nstarted_unix_us=5\n", "nonce-2"));
  Take(PieceKind::kHeartbeat, "no record at all");
  EXPECT_THAT(Names(), IsEmpty());
  Take(PieceKind::kClaim, Record(Runner()));
  Take(PieceKind::kClaim, Record(Runner(), "nonce-1", 1), 1);
  EXPECT_THAT(Names(), ElementsAre("0-0.claim", "0-1.claim"));
  const auto question = mirror_.Ask(0);
  ASSERT_TRUE(question.ok());
  EXPECT_FALSE(question->claim);
  EXPECT_TRUE(question->started && question->ended && question->attempt_claim);
  EXPECT_TRUE(question->metrics_offset);
  EXPECT_FALSE(mirror_.Ask(1)->metrics_offset) << "metrics are rank 0's";
}

TEST_F(Mirror, TwoNoncesOfOneAttemptAreNoGang) {
  const std::string owner = "owner=launch\nrandom=1\n";
  const absl::Status taken =
      mirror_.Take(1, {{.id = 0, .kind = PieceKind::kAttemptClaim, .bytes = Record(owner, "nonce-2", 1)}});
  EXPECT_THAT(std::string(taken.message()), HasSubstr("claimed there by a launch that tpd did not hand it to"));
  EXPECT_THAT(Names(), IsEmpty());
  Take(PieceKind::kAttemptClaim, Record(owner));
  EXPECT_THAT(Names(), ElementsAre("attempt.claim"));
}

TEST_F(Mirror, AFailureIsToldOnceItsLogIsHere) {
  Take(PieceKind::kEnded, End(1, 10));
  EXPECT_TRUE(fs::exists(dir_.At("0-0.exit"))) << "nothing of the log comes any more";
}

TEST_F(Mirror, AnEndOfAFailureIsKeptBackWhileTheLogGrows) {
  const auto log = [](int64_t offset, const std::string& bytes) {
    return Piece{.id = 0, .kind = PieceKind::kLog, .begin = 0, .offset = offset, .bytes = bytes};
  };
  ASSERT_TRUE(mirror_.Take(0, {{.id = 0, .kind = PieceKind::kEnded, .bytes = End(1, 10)}, log(0, "12345")}).ok());
  EXPECT_TRUE(mirror_.KeepsEndBack(0));
  EXPECT_FALSE(fs::exists(dir_.At("0-0.exit")));
  ASSERT_TRUE(mirror_.Take(0, {log(5, "67890")}).ok());
  EXPECT_FALSE(mirror_.KeepsEndBack(0));
  EXPECT_TRUE(fs::exists(dir_.At("0-0.exit")));
}

TEST_F(Mirror, AGoodEndIsNotKeptBack) {
  const Piece log{.id = 0, .kind = PieceKind::kLog, .begin = 0, .offset = 0, .bytes = "1"};
  ASSERT_TRUE(mirror_.Take(0, {{.id = 0, .kind = PieceKind::kEnded, .bytes = End(0, 1000)}, log}).ok());
  EXPECT_FALSE(mirror_.KeepsEndBack(0));
  EXPECT_TRUE(fs::exists(dir_.At("0-0.exit")));
}

TEST_F(Mirror, RandomPiecesTouchOnlyNamesOfTheContract) {
  Random random(11);
  const std::vector<PieceKind> kinds = {PieceKind::kAttemptClaim, PieceKind::kClaim,     PieceKind::kStarted,
                                        PieceKind::kEnded,        PieceKind::kHeartbeat, PieceKind::kLog,
                                        PieceKind::kSystem,       PieceKind::kMetrics};
  for (int round = 0; round < 2000; ++round) {
    Piece piece;
    piece.kind = kinds[static_cast<size_t>(random.Between(0, 7))];
    piece.begin = random.Between(0, 3) * 50;
    piece.offset = piece.begin + random.Between(0, 40);
    const std::vector<std::string> records = {Record(Runner()), End(0, 1), "tp-record 1\nend\n", "\0x\n",
                                              Record("count=1\nbeat_boot_us=1\nbeat_unix_us=1\n")};
    piece.bytes = records[static_cast<size_t>(random.Between(0, 4))];
    mirror_.Take(static_cast<size_t>(random.Between(0, 1)), {piece}).IgnoreError();
  }
  for (const std::string& name : Names()) {
    EXPECT_THAT(name, ::testing::MatchesRegex("(0-[01]\\.(claim|started|exit|heartbeat|log|system\\.log)|"
                                              "0-[01]\\.log\\.[0-9]*|attempt\\.claim|metrics\\.jsonl)"));
  }
}

// --- rsync ----------------------------------------------------------------------------------------------

TEST(Rsync, WordsForItsShellPassUnchanged) {
  CopyOrder order{.host = {"node1", "fe80::1%eth0"}, .source = "/a b", .target = "/c'd"};
  order.mark = "it's";
  const auto argv = RsyncArguments(order, {"/usr/bin/ssh", "-o", "ControlPath=\"/tmp/a b'c\""});
  EXPECT_THAT(argv, ::testing::Contains("--rsh='/usr/bin/ssh' '-o' 'ControlPath=\"/tmp/a b''c\"'"));
  EXPECT_EQ(argv.back(), "[fe80::1%eth0]:/c'd/");
  EXPECT_EQ(argv[argv.size() - 2], "/a b/");
  EXPECT_EQ(argv[argv.size() - 3], "--");
}

TEST(Rsync, OnlyWhatComesFromAHostIsMadeHarmless) {
  CopyOrder order{.host = {"node1", "10.0.0.1"}, .source = "/a", .target = "/b"};
  EXPECT_THAT(RsyncArguments(order, {"ssh"}), ::testing::Not(::testing::Contains("--munge-links")));
  order.direction = CopyDirection::kFromHost;
  EXPECT_THAT(RsyncArguments(order, {"ssh"}), ::testing::IsSupersetOf({"--munge-links", "--chmod=ug-s"}));
  EXPECT_EQ(UsableLink("/rsyncd-munged/../../etc"), "../../etc");
  EXPECT_EQ(UsableLink("plain"), "plain");
}

TEST(Rsync, ProgressIsReadFromTheNewestWholeLine) {
  EXPECT_EQ(BytesInProgress(""), -1);
  EXPECT_EQ(BytesInProgress("      1,234   0%    1.00MB/s"), -1);
  EXPECT_EQ(BytesInProgress("\r      1234   0%    1.00MB/s    0:00:00  \r      99"), 1234);
  EXPECT_EQ(BytesInProgress("\r  3,221,225,472  36%  110.00MB/s    0:00:52\n"), 3221225472);
  EXPECT_EQ(BytesInProgress("garbage\n"), -1);
}

TEST(Rsync, EndsAreSentences) {
  CopyOrder order{.host = {"node2", "10.0.0.2"}, .source = "/a", .target = "/b"};
  const auto judged = [&](int code, const char* err) { return JudgeRsync(order, code, 0, err); };
  EXPECT_TRUE(judged(0, "").ok());
  EXPECT_TRUE(judged(24, "file has vanished").ok());
  const absl::Status full = judged(11, "rsync: write failed on \"/b/x\": No space left on device (28)");
  EXPECT_TRUE(absl::IsResourceExhausted(full));
  EXPECT_THAT(std::string(full.message()), HasSubstr("the disk of node2 that holds /b is full"));
  EXPECT_THAT(std::string(judged(127, "sh: 1: rsync: not found").message()), HasSubstr("install the package rsync"));
  EXPECT_TRUE(absl::IsFailedPrecondition(judged(12, "protocol version mismatch -- is your shell clean?")));
  EXPECT_TRUE(absl::IsUnavailable(judged(255, "ssh: connect to host 10.0.0.2 port 22: Connection refused")));
  EXPECT_TRUE(absl::IsUnavailable(judged(30, "timeout")));
  EXPECT_THAT(std::string(judged(23, "rsync: opendir \"/x\" failed: Permission denied (13)\nmore").message()),
              HasSubstr("Permission denied"));
  order.direction = CopyDirection::kFromHost;
  EXPECT_THAT(std::string(judged(11, "No space left on device").message()), HasSubstr("tpd's disk that holds /b"));
}

TEST(CopyJob, TellsOfAllMachinesAndIsCalledOff) {
  const auto job = *CopyJob::Make();
  EXPECT_TRUE(job->under_way());
  job->Tell("node1", "copies to node1");
  job->Tell("node2", "copies to node2");
  EXPECT_EQ(job->words(), "copies to node1; copies to node2");
  job->Tell("node1", "");
  EXPECT_EQ(job->words(), "copies to node2");
  EXPECT_TRUE(job->Wait("node2", absl::Milliseconds(1)));
  job->GiveUp("node2");
  EXPECT_FALSE(job->Wait("node2", absl::Hours(1)));
  std::thread later([&] { job->CallOff(); });
  EXPECT_FALSE(job->Wait("node1", absl::Hours(1)));
  later.join();
  job->End("it is full");
  EXPECT_FALSE(job->under_way());
  EXPECT_EQ(job->words(), "it is full");
  EXPECT_EQ(ProgressWords(int64_t{3} << 30, int64_t{9} << 30), "3.0 GiB of 9.0 GiB");
  EXPECT_EQ(ProgressWords(10, 0), "10 B");
}

}  // namespace
}  // namespace tp::node
