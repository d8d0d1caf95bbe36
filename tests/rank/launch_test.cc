// `tp-rank launch`: all ranks of a plan or none, detached.

#include <csignal>
#include <filesystem>
#include <string>
#include <string_view>

#include "harness.h"

namespace tp::rank_test {
namespace {

namespace fs = std::filesystem;

class LaunchTest : public AttemptTest {
 protected:
  static std::string RankStrings(const Arguments& environment, const Arguments& words) {
    std::string text("R\0", 2);
    for (const std::string& entry : environment) text += "E" + entry + '\0';
    for (const std::string& word : words) text += "A" + word + '\0';
    return text;
  }
  static std::string WithHeader(int ranks, const std::string& payload) {
    return "tp-plan 1 " + std::to_string(ranks) + " " + std::to_string(payload.size()) + "\n" + payload;
  }
  std::string Payload(int ranks, const std::string& script) const {
    std::string payload;
    for (int rank = 0; rank < ranks; ++rank) {
      payload += RankStrings({"PATH=/usr/bin:/bin", "SECRET=s3cret", "EMPTY="},
                             attempt_.RunWords(Shell(script), {.rank = rank, .extra = {}}));
    }
    return payload;
  }
  static int Launch(const std::string& plan) {
    return Child({TP_RANK_BINARY, "launch"}, {.before_exec = {}, .stdin_content = plan, .environment = {}}).Wait();
  }
  bool NothingStarted() const { return !fs::exists(attempt_.dir() / "attempt.claim"); }
  bool HasEnded(int rank) const { return ReadRecord(attempt_.File(".exit", rank)).has_value(); }
};

TEST_F(LaunchTest, StartsEveryRankDetached) {
  constexpr int kRanks = 30;
  EXPECT_EQ(Launch(WithHeader(kRanks, Payload(kRanks, "env | sort; readlink /proc/self/fd/0"))), 0);
  for (int rank = 0; rank < kRanks; ++rank) {
    ASSERT_TRUE(Eventually([&] { return HasEnded(rank); })) << rank;
    EXPECT_EQ(attempt_.Exit(rank).at("code"), "0");
    EXPECT_EQ(ReadFile(attempt_.File(".log", rank)), "EMPTY=\nPATH=/usr/bin:/bin\nPWD=" + attempt_.work().string() +
                                                         "\nSECRET=s3cret\nTP_RANK_TOKEN=" + attempt_.key() + "/0-" +
                                                         std::to_string(rank) + "/nonce-1\n/dev/null\n");
  }
}

TEST_F(LaunchTest, CallerMayDieAtOnce) {
  Child caller({"sh", "-c", "\"$0\" launch; kill -KILL 0", TP_RANK_BINARY},
               {.before_exec = [] { setsid(); },
                .stdin_content = WithHeader(2, Payload(2, "touch ready; while [ ! -e go ]; do sleep 0.02; done")),
                .environment = {}});
  EXPECT_EQ(caller.Wait(), 1000 + SIGKILL);
  ASSERT_TRUE(attempt_.WaitForMark("ready"));
  WriteFile(attempt_.work() / "go", "");
  for (int rank : {0, 1}) {
    ASSERT_TRUE(Eventually([&] { return HasEnded(rank); }));
    EXPECT_EQ(attempt_.Exit(rank).at("code"), "0");
  }
}

TEST_F(LaunchTest, JobsDoNotDependOnTheCallersUmaskAndSession) {
  EXPECT_EQ(Launch(WithHeader(1, Payload(1, "umask; cut -d' ' -f7 /proc/$PPID/stat"))), 0);
  ASSERT_TRUE(Eventually([&] { return HasEnded(0); }));
  EXPECT_EQ(ReadFile(attempt_.File(".log")), "0022\n0\n");
}

TEST_F(LaunchTest, EveryTruncationStartsNothing) {
  const std::string plan = WithHeader(2, Payload(2, "true"));
  for (size_t size = 0; size < plan.size(); size += size < 40 ? 1 : 29) {
    ASSERT_EQ(Launch(plan.substr(0, size)), kUsage) << size;
  }
  EXPECT_TRUE(NothingStarted());
}

TEST_F(LaunchTest, PlanThatIsNotWhatItSaysStartsNothing) {
  const std::string good = Payload(2, "true");
  const std::string bad_rank = good + RankStrings({}, {"--dir", attempt_.dir().string(), "--", "true"});
  for (const std::string& plan :
       {WithHeader(1, good), WithHeader(3, good), WithHeader(0, ""), WithHeader(2, good) + "x",
        WithHeader(2, good + "x"), WithHeader(3, bad_rank), WithHeader(3, good + std::string("R\0", 2)),
        WithHeader(2, std::string("Aword\0", 6) + good),
        WithHeader(3, good + RankStrings({"noequals"}, attempt_.RunWords({"true"}, {}))),
        "tp-plan 2 2 " + std::to_string(good.size()) + "\n" + good}) {
    EXPECT_EQ(Launch(plan), kUsage);
  }
  EXPECT_TRUE(NothingStarted());
}

}  // namespace
}  // namespace tp::rank_test
