#include <nlohmann/json.hpp>

#include "command_fixture.h"

namespace tp::cli {
namespace {

using testing::HasSubstr;

class UsageCommandTest : public CommandTest {
 protected:
  UsageCommandTest() {
    AddRow("train-42", 57'600'123, 1);
    AddRow("eval, the \"second\"", 1, 2);
  }

  void AddRow(const std::string& key, int64_t gpu_ms, int64_t runs) {
    v1::UsageRow& row = *server_.script().usage.add_rows();
    row.set_key(key);
    row.set_gpu_ms(gpu_ms);
    row.set_runs(runs);
  }
};

TEST_F(UsageCommandTest, SumsExactly) {
  const Finished tp = Tp({"usage", "--by", "run"});
  EXPECT_EQ(tp.exit_code, 0);
  EXPECT_EQ(tp.out,
            "RUN                 RUNS  GPU-SECONDS  GPU-HOURS\n"
            "train-42               1    57600.123      16.00\n"
            "eval, the \"second\"     2        0.001       0.00\n"
            "total                  -    57600.124      16.00\n");
}

TEST_F(UsageCommandTest, CsvForSpreadsheets) {
  EXPECT_EQ(Tp({"usage", "-o", "csv"}).out,
            "run,runs,gpu_ms,gpu_seconds\r\n"
            "train-42,1,57600123,57600.123\r\n"
            "\"eval, the \"\"second\"\"\",2,1,0.001\r\n");
}

TEST_F(UsageCommandTest, JsonHasMillisecondsAndSeconds) {
  const auto document = nlohmann::json::parse(Tp({"usage", "-o", "json"}).out);
  EXPECT_EQ(document["by"], "run");
  EXPECT_EQ(document["rows"][0]["gpu_ms"], 57'600'123);
  EXPECT_EQ(document["rows"][0]["gpu_seconds"], 57600.123);
}

TEST_F(UsageCommandTest, FlagsBecomeTheQuery) {
  Tp({"usage", "--by", "series", "-A", "--from", "2026-11-01", "--project", "p"});
  const v1::QueryUsageRequest request = server_.asked().usages.at(0);
  EXPECT_EQ(request.by(), v1::USAGE_KEY_SERIES);
  EXPECT_EQ(request.owner(), "*");
  EXPECT_EQ(request.project(), "p");
  EXPECT_EQ(request.from().seconds(), 1'793'491'200);
  EXPECT_FALSE(request.has_to());
}

TEST_F(UsageCommandTest, NamesTheKeysThatExist) {
  const Finished tp = Tp({"usage", "--by", "colour"});
  EXPECT_EQ(tp.exit_code, 2);
  EXPECT_EQ(tp.err, "tp: --by colour: there are user, project, series, profile, day, month, run\n");
}

TEST_F(UsageCommandTest, AuditShowsTheIntervals) {
  for (int seq = 1; seq <= 2; ++seq) {
    v1::Interval& interval = server_.script().intervals.emplace_back();
    interval.set_seq(seq);
    interval.set_run("train-42");
    interval.set_step(1);
    interval.set_attempt(seq);
    interval.set_series("h200");
    interval.set_profile("h200");
    interval.set_cards(16);
    interval.mutable_start()->set_seconds(1'796'025'612);
    interval.mutable_end()->set_seconds(1'796'025'614);
    interval.set_gpu_ms(32'000);
    interval.set_evidence("end records");
    interval.set_flagged(seq == 2);
  }
  EXPECT_EQ(Tp({"usage", "--audit"}).out,
            "SEQ  RUN       STEP  ATTEMPT  SERIES  CARDS  START                     END                       "
            "GPU-SECONDS  EVIDENCE\n"
            "  1  train-42     1        1  h200       16  2026-11-30T08:00:12.000Z  2026-11-30T08:00:14.000Z  "
            "     32.000  end records\n"
            "  2  train-42     1        2  h200       16  2026-11-30T08:00:12.000Z  2026-11-30T08:00:14.000Z  "
            "     32.000  end records (flagged)\n");
  EXPECT_THAT(
      Tp({"usage", "--audit", "-o", "csv"}).out,
      HasSubstr("2,train-42,1,2,0,h200,h200,,,16,2026-11-30T08:00:12.000Z,2026-11-30T08:00:14.000Z,32000,true,end "
                "records,,false,,"));
}

TEST_F(UsageCommandTest, NothingIsSaidToBeNothing) {
  server_.script().usage.clear_rows();
  for (const bool audit : {false, true}) {
    const Finished tp = audit ? Tp({"usage", "--audit"}) : Tp({"usage"});
    EXPECT_EQ(tp.out + tp.err, "nothing was used\n");
    EXPECT_EQ(tp.exit_code, 0);
  }
}

TEST_F(UsageCommandTest, AuditHasTheFiltersOfTheSums) {
  Tp({"usage", "--audit", "--user", "bob", "--project", "p", "--run", "7", "--from", "2026-11-01", "--to",
      "2026-12-01"});
  const v1::ListIntervalsRequest request = server_.asked().audits.at(0);
  EXPECT_EQ(request.owner(), "bob");
  EXPECT_EQ(request.project(), "p");
  EXPECT_EQ(request.run(), "7");
  EXPECT_EQ(request.from().seconds(), 1'793'491'200);
  EXPECT_EQ(request.to().seconds(), 1'796'083'200);
}

TEST_F(UsageCommandTest, CorrectionsSaySo) {
  v1::Interval& interval = server_.script().intervals.emplace_back();
  interval.set_seq(3);
  interval.set_gpu_ms(-1500);
  interval.set_evidence("end record");
  interval.set_delta(true);
  interval.set_hash("abc");
  EXPECT_THAT(Tp({"usage", "--audit"}).out, HasSubstr("-1.500  end record (correction)\n"));
  EXPECT_THAT(Tp({"usage", "--audit", "-o", "csv"}).out, HasSubstr(",-1500,false,end record,,true,abc,\r\n"));
}

}  // namespace
}  // namespace tp::cli
