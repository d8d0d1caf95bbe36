#include "cli/log_printer.h"

#include <array>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/fd.h"
#include "temp_dir.h"

namespace tp::cli {
namespace {

v1::ReadLogResponse Chunk(const std::string& rank, int64_t offset, const std::string& data, int32_t attempt = 1,
                          int32_t step = 1) {
  v1::ReadLogResponse chunk;
  chunk.set_rank(rank);
  chunk.set_step(step);
  chunk.set_attempt(attempt);
  chunk.set_offset(offset);
  chunk.set_data(data);
  return chunk;
}

class LogPrinterTest : public testing::Test {
 protected:
  std::string Printed() const { return ReadFile(dir_ / "out"); }

  TempDir dir_;
  UniqueFd out_{::open((dir_ / "out").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600)};
};

TEST_F(LogPrinterTest, PrintsBytesAsTheyAre) {
  LogPrinter printer(out_.get(), false);
  ASSERT_TRUE(printer.Accept(Chunk("0-0", 0, "a\x1b[2J\r")).ok());
  ASSERT_TRUE(printer.Accept(Chunk("0-0", 6, std::string("\xff\0z", 3))).ok());
  ASSERT_TRUE(printer.Finish().ok());
  EXPECT_EQ(Printed(), std::string("a\x1b[2J\r\xff\0z", 9));
}

TEST_F(LogPrinterTest, StepsHaveTitles) {
  LogPrinter printer(out_.get(), false);
  const auto named = [](const std::string& name, int32_t step, int32_t attempt, const std::string& data) {
    v1::ReadLogResponse chunk = Chunk("0-0", 0, data, attempt, step);
    chunk.set_step_name(name);
    return chunk;
  };
  ASSERT_TRUE(printer.Accept(named("main", 1, 2, "trained")).ok());
  ASSERT_TRUE(printer.Accept(named("ex\x1bport", 2, 1, "exported\n")).ok());
  ASSERT_TRUE(printer.Accept(named("eval", 3, 1, "done\n")).ok());
  ASSERT_TRUE(printer.Finish().ok());
  EXPECT_EQ(
      Printed(),
      "==> step 1 main, attempt 2 <==\ntrained\n\n==> step 2 ex\\x1bport <==\nexported\n\n==> step 3 eval <==\ndone\n");
}

TEST_F(LogPrinterTest, PrintsNothingTwiceAfterReopening) {
  LogPrinter printer(out_.get(), false);
  ASSERT_TRUE(printer.Accept(Chunk("0-0", 100, "tail ")).ok());
  ASSERT_TRUE(printer.Accept(Chunk("0-0", 0, std::string(60, 'x'))).ok());
  ASSERT_TRUE(printer.Accept(Chunk("0-0", 60, std::string(43, 'y'))).ok());
  ASSERT_TRUE(printer.Accept(Chunk("0-0", 103, "l and on")).ok());
  EXPECT_EQ(Printed(), "tail and on");
}

TEST_F(LogPrinterTest, KeepsAttemptsApart) {
  LogPrinter printer(out_.get(), false);
  ASSERT_TRUE(printer.Accept(Chunk("0-0", 0, "first\n", 1)).ok());
  ASSERT_TRUE(printer.Accept(Chunk("0-0", 0, "second\n", 2)).ok());
  EXPECT_EQ(Printed(), "first\nsecond\n");
}

TEST_F(LogPrinterTest, KeepsStepsApartWhoseAttemptsCountAnew) {
  LogPrinter printer(out_.get(), false);
  ASSERT_TRUE(printer.Accept(Chunk("0-0", 0, "step one\n")).ok());
  ASSERT_TRUE(printer.Accept(Chunk("0-0", 0, "two\n", 1, 2)).ok());
  // Opened anew: the second step from its beginning.
  ASSERT_TRUE(printer.Accept(Chunk("0-0", 0, "two\nmore\n", 1, 2)).ok());
  EXPECT_EQ(Printed(), "step one\ntwo\nmore\n");
}

TEST_F(LogPrinterTest, AnUnfinishedLineIsNotCarriedIntoTheNextAttempt) {
  LogPrinter printer(out_.get(), true);
  ASSERT_TRUE(printer.Accept(Chunk("0-0", 0, "killed here")).ok());
  ASSERT_TRUE(printer.Accept(Chunk("0-0", 0, "again\n", 2)).ok());
  EXPECT_EQ(Printed(), "0-0 | killed here\n0-0 | again\n");
}

TEST_F(LogPrinterTest, PrefixesWholeLinesOfSeveralRanks) {
  LogPrinter printer(out_.get(), true);
  ASSERT_TRUE(printer.Accept(Chunk("0-0", 0, "hel")).ok());
  ASSERT_TRUE(printer.Accept(Chunk("0-1", 0, "other\nlast")).ok());
  ASSERT_TRUE(printer.Accept(Chunk("0-0", 3, "lo\n")).ok());
  ASSERT_TRUE(printer.Finish().ok());
  EXPECT_EQ(Printed(), "0-1 | other\n0-0 | hello\n0-1 | last\n");
}

TEST_F(LogPrinterTest, AnEndlessLineDoesNotFillTheMemory) {
  LogPrinter printer(out_.get(), true);
  ASSERT_TRUE(printer.Accept(Chunk("0-0", 0, std::string(100'000, 'x'))).ok());
  EXPECT_EQ(Printed(), "0-0 | " + std::string(64 * 1024, 'x') + "\n");
}

TEST_F(LogPrinterTest, SaysThatItCannotWrite) {
  const UniqueFd full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  LogPrinter printer(full.get(), false);
  const absl::Status status = printer.Accept(Chunk("0-0", 0, "x"));
  EXPECT_EQ(std::string(status.message()), "cannot write to stdout: No space left on device");
}

}  // namespace
}  // namespace tp::cli
