// The Standard Workload Format: what is read, left out and refused.
#include "simulate/swf.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tp::simulate {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct ReadTrace {
  Workload workload;
  std::vector<std::string> problems;
};

ReadTrace ReadText(std::string_view text,
                   const SwfShape& shape = {.profile = "gpu", .processors = 1, .gpus_per_node = 8}) {
  decode::Problems problems("log.swf");
  ReadTrace read;
  read.workload = ReadSwf(text, shape, problems);
  read.problems = problems.Lines();
  return read;
}

// Number, submitted, ran, processors allocated and requested, time requested, status, user.
std::string Line(int submitted, int ran, int allocated, int requested, int limit, int status, int user) {
  return fmt::format("1 {} 5 {} {} -1 -1 {} {} -1 {} {} 1 -1 1 -1 -1 -1\n", submitted, ran, allocated, requested, limit,
                     status, user);
}

TEST(Swf, CommentsBlankLinesAndJobs) {
  const ReadTrace read =
      ReadText("; Version: 2.2\r\n;  UnixStartTime: 1136070024\n\n   \n" + Line(10, 100, 4, 4, 300, 1, 7) +
               "  2 20 0 50.75 2 -1 -1 -1 -1 -1 0 -1 -1 -1 -1 -1 -1 -1 ; a failed one\r\n");
  EXPECT_THAT(read.problems, IsEmpty());
  EXPECT_EQ(read.workload.begins, absl::FromUnixSeconds(1136070024));
  ASSERT_EQ(read.workload.jobs.size(), 2u);
  const Submission& first = read.workload.jobs[0];
  EXPECT_EQ(first.at, absl::Seconds(10));
  EXPECT_EQ(first.runs, absl::Seconds(100));
  EXPECT_EQ(first.user, "user-7");
  EXPECT_EQ(first.profile, "gpu:4");
  EXPECT_EQ(first.time_limit, absl::Seconds(300));
  const Submission& second = read.workload.jobs[1];
  EXPECT_EQ(second.user, "unknown");
  EXPECT_EQ(second.profile, "gpu:2");
  EXPECT_EQ(second.runs, absl::Seconds(50));
  EXPECT_EQ(second.time_limit, std::nullopt);
}

TEST(Swf, WhatMissesSomethingIsLeftOutAndCounted) {
  const ReadTrace read =
      ReadText(Line(1, -1, 4, 4, 10, 5, 1) + Line(1, 10, -1, -1, 10, 1, 1) + Line(1, 10, 4, 4, 10, 2, 1) +
               Line(1, 10, 4, 4, 10, 3, 1) + Line(-1, 10, 4, 4, 10, 1, 1));
  EXPECT_THAT(read.problems, IsEmpty());
  EXPECT_THAT(read.workload.jobs, IsEmpty());
  EXPECT_THAT(read.workload.notes,
              ElementsAre(HasSubstr("2 lines are left out: parts"), HasSubstr("1 lines are left out: without a number"),
                          HasSubstr("2 lines are left out: without a submission or run time")));
}

TEST(Swf, ProcessorsBecomeCardsAndWholeNodes) {
  const auto total = [](int processors, const SwfShape& shape) {
    return ReadText(Line(0, 1, -1, processors, -1, 1, 1), shape).workload.jobs.at(0).profile;
  };
  const SwfShape cards{.profile = "g", .processors = 4, .gpus_per_node = 8};
  EXPECT_EQ(total(1, cards), "g:1");
  EXPECT_EQ(total(5, cards), "g:2");
  EXPECT_EQ(total(32, cards), "g:8");
  EXPECT_EQ(total(33, cards), "g:16");
  const SwfShape nodes{.profile = "c", .processors = 16, .gpus_per_node = 0};
  EXPECT_EQ(total(17, nodes), "c:2");
}

TEST(Swf, HostileLines) {
  const std::string good = Line(1, 10, 4, 4, 10, 1, 1);
  const ReadTrace read = ReadText(good + "1 2 3\n" + good.substr(0, good.size() - 1) + " 19\n" + "1 x\x1b[2J 3\n" +
                                  "1 99999999999999999999 3\n" + "1 -7 3\n" + std::string("1 \0 3\n", 6) + "1 2. 3\n" +
                                  "1 +4 3\n" + "; UnixStartTime: soon");
  EXPECT_EQ(read.workload.jobs.size(), 1u);
  EXPECT_EQ(read.workload.begins, std::nullopt);
  EXPECT_THAT(read.problems, ElementsAre("log.swf:2:1: 3 fields; a job has 18", HasSubstr("log.swf:3:"),
                                         "log.swf:4:3: 'x\\x1b[2J' is not a number from -1 to 10000000000",
                                         "log.swf:5:3: '99999999999999999999' is not a number from -1 to 10000000000",
                                         "log.swf:6:3: '-7' is not a number from -1 to 10000000000",
                                         "log.swf:7:3: '\\x00' is not a number from -1 to 10000000000",
                                         "log.swf:8:3: '2.' is not a number from -1 to 10000000000",
                                         "log.swf:9:3: '+4' is not a number from -1 to 10000000000"));
  EXPECT_THAT(read.problems[1], HasSubstr("more than the 18 fields of a job"));
}

}  // namespace
}  // namespace tp::simulate
