#include <nlohmann/json.hpp>

#include "absl/time/clock.h"
#include "cli/render/time.h"
#include "command_fixture.h"

namespace tp::cli {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::StartsWith;

v1::Standing MakeStanding(const std::string& user) {
  v1::Standing standing;
  standing.set_user(user);
  standing.mutable_limits()->set_gpus(8);
  (*standing.mutable_limits()->mutable_series_gpus())["h200"] = 16;
  standing.mutable_limits()->set_jobs(-1);
  standing.mutable_limits()->set_gpu_hours(500);
  standing.mutable_limits()->set_storage_bytes(int64_t{1} << 40);
  standing.mutable_use()->set_gpus(16);
  (*standing.mutable_use()->mutable_series_gpus())["h200"] = 16;
  standing.mutable_use()->set_jobs(1);
  standing.mutable_use()->set_month_gpu_ms(7'200'000);
  v1::QuotaRule& own = *standing.add_rules();
  own.set_id(3);
  own.mutable_limits()->set_gpus(8);
  own.mutable_limits()->set_jobs(4);
  *own.mutable_set_at() = ToProto(absl::Now() - absl::Hours(2));
  own.set_set_by("root");
  v1::QuotaRule& dated = *standing.add_rules();
  dated.set_id(4);
  *dated.mutable_until() = ToProto(absl::Now() + absl::Hours(3) + absl::Seconds(30));
  dated.mutable_limits()->set_jobs(-1);
  *dated.mutable_set_at() = ToProto(absl::Now() - absl::Hours(1));
  dated.set_set_by("root");
  return standing;
}

class QuotaCommandTest : public CommandTest {
 protected:
  QuotaCommandTest() {
    server_.script().note = "quota of alice: gpus: 16";
    *server_.script().standing.mutable_standing() = MakeStanding("alice");
    server_.script().standing.mutable_defaults()->set_jobs(8);
    server_.script().standings = {MakeStanding("alice"), MakeStanding("bob")};
    server_.script().standings[1].clear_limits();
  }
};

TEST_F(QuotaCommandTest, SetSaysWhatChangesAndNothingElse) {
  const Finished tp = Tp({"admin", "quota", "set", "alice", "--gpus", "16", "--series", "h200=8", "--storage", "2GiB"});
  EXPECT_EQ(tp.exit_code, 0);
  EXPECT_EQ(tp.out, "");
  EXPECT_EQ(tp.err, "quota of alice: gpus: 16\n");
  const v1::SetQuotaRequest request = server_.asked().quotas.at(0);
  EXPECT_EQ(request.user(), "alice");
  EXPECT_EQ(request.limits().gpus(), 16);
  EXPECT_FALSE(request.limits().has_jobs()) << "whatever the rule says now: another admin may be changing it";
  EXPECT_EQ(request.limits().series_gpus().at("h200"), 8);
  EXPECT_EQ(request.limits().storage_bytes(), int64_t{2} << 30);
  EXPECT_FALSE(request.limits().has_gpu_hours());
  EXPECT_FALSE(request.has_from());
  EXPECT_FALSE(request.dry_run());
  EXPECT_EQ(request.request_id().size(), 32U);
}

TEST_F(QuotaCommandTest, DefaultClears) {
  ASSERT_EQ(Tp({"admin", "quota", "set", "alice", "--gpus", "default", "--series", "h200=default", "--jobs", "default",
                "--gpu-hours", "default", "--storage", "default"})
                .exit_code,
            0);
  const v1::SetQuotaRequest request = server_.asked().quotas.at(0);
  EXPECT_EQ(request.limits().ByteSizeLong(), 0U);
  EXPECT_THAT(request.clear(), testing::ElementsAre("gpus", "series_gpus.h200", "jobs", "gpu_hours", "storage_bytes"));
}

TEST_F(QuotaCommandTest, ADryRunIsOnlyAsked) {
  const Finished tp = Tp({"admin", "quota", "set", "alice", "--gpus", "1", "--dry-run"});
  EXPECT_EQ(tp.exit_code, 0);
  EXPECT_EQ(tp.out, "nothing that waits or runs is touched\n");
  EXPECT_EQ(tp.err, "dry run, nothing is changed: quota of alice: gpus: 16\n");
  EXPECT_TRUE(server_.asked().quotas.at(0).dry_run());
  ASSERT_EQ(Tp({"admin", "quota", "unset", "alice", "--dry-run"}).exit_code, 0);
  EXPECT_TRUE(server_.asked().quotas.at(1).dry_run());
}

TEST_F(QuotaCommandTest, ADatedOneIsARuleOfItsOwn) {
  ASSERT_EQ(Tp({"admin", "quota", "set", "alice", "--jobs", "none", "--until", "7d"}).exit_code, 0);
  const v1::SetQuotaRequest request = server_.asked().quotas.at(0);
  EXPECT_EQ(request.limits().jobs(), -1);
  EXPECT_FALSE(request.limits().has_gpus());
  const absl::Duration ahead = FromProto(request.until()) - absl::Now();
  EXPECT_GT(ahead, absl::Hours(7 * 24) - absl::Minutes(2));
  EXPECT_LT(ahead, absl::Hours(7 * 24) + absl::Seconds(1));
}

TEST_F(QuotaCommandTest, RefusesBeforeItAsks) {
  const auto refused = [&](std::vector<std::string> flags) {
    flags.insert(flags.begin(), {"admin", "quota", "set", "alice"});
    const Finished tp = Tp(flags);
    EXPECT_EQ(tp.exit_code, 2) << tp.err;
    return tp.err;
  };
  EXPECT_THAT(refused({}), HasSubstr("say what is limited: --gpus"));
  EXPECT_THAT(refused({"--gpus", "many"}), HasSubstr("--gpus many: a limit is a whole number from 0 on, none or"));
  EXPECT_THAT(refused({"--gpus", "99999999999999999999"}), HasSubstr("a limit is a whole number"));
  EXPECT_THAT(refused({"--series", "h200"}), HasSubstr("write SERIES=N, as in h200=8"));
  EXPECT_THAT(refused({"--storage", "1TB"}), HasSubstr("write bytes with their unit"));
  EXPECT_THAT(refused({"--gpus", "1", "--until", "soon"}), HasSubstr("--until soon: not a time"));
  EXPECT_TRUE(server_.asked().quotas.empty());
}

TEST_F(QuotaCommandTest, UnsetTakesARuleOrAUser) {
  ASSERT_EQ(Tp({"admin", "quota", "unset", "4"}).exit_code, 0);
  EXPECT_EQ(server_.asked().removed_rules.at(0), 4);
  ASSERT_EQ(Tp({"admin", "quota", "unset", "alice"}).exit_code, 0);
  EXPECT_EQ(server_.asked().quotas.at(0).user(), "alice");
  EXPECT_EQ(server_.asked().quotas.at(0).limits().ByteSizeLong(), 0U);
  EXPECT_THAT(server_.asked().quotas.at(0).clear(), testing::ElementsAre("*"));
  EXPECT_EQ(Tp({"admin", "quota", "unset", "4x"}).exit_code, 2);
}

TEST_F(QuotaCommandTest, ShowHasUseLimitsAndRules) {
  EXPECT_EQ(WithoutTimes(Tp({"admin", "quota", "show", "alice"}).out),
            "alice\n"
            "QUOTA              USED    LIMIT  OVER BY\n"
            "gpus                 16        8        8\n"
            "h200                 16       16        -\n"
            "jobs                  1     none        -\n"
            "gpu-hours           2.0      500        -\n"
            "storage    not measured  1.0 TiB        -\n"
            "\n"
            "RULE  FROM  UNTIL  LIMITS          SET     BY\n"
            "   3  -     -      gpus 8, jobs 4  2h ago  root\n"
            "   4  -     in 3h  jobs none       1h ago  root\n"
            "\n"
            "defaults    jobs 8\n");
  const json document = json::parse(Tp({"admin", "quota", "show", "alice", "-o", "json"}).out);
  EXPECT_EQ(document["standing"]["use"]["month_gpu_ms"], 7'200'000);
  EXPECT_EQ(document["standing"]["use"]["month_gpu_seconds"], 7200.0);
  EXPECT_EQ(document["standing"]["limits"]["jobs"], -1);
  EXPECT_TRUE(document["defaults"]["gpus"].is_null());
}

TEST_F(QuotaCommandTest, ListHasEverybody) {
  EXPECT_EQ(Tp({"admin", "quota", "list"}).out,
            "USER       GPUS  JOBS  GPU-HOURS    STORAGE  SERIES      RULES\n"
            "(default)     -     8          -          -  -               -\n"
            "alice      16/8     1    2.0/500  ?/1.0 TiB  h200 16/16      2\n"
            "bob          16     1        2.0          ?  h200 16         2\n");
  EXPECT_EQ(Tp({"admin", "quota", "list", "-o", "name"}).out, "alice\nbob\n");
  EXPECT_EQ(json::parse(Tp({"admin", "quota", "list", "-o", "json"}).out)["standings"].size(), 2U);
}

TEST_F(QuotaCommandTest, StatusBeginsWithOnesStanding) {
  EXPECT_THAT(Tp({"status"}).out, HasSubstr("\nquota    gpus 16/8 (over by 8), h200 16/16, gpu-hours 2.0/500, "
                                            "storage not measured/1.0 TiB\n"));
  const json document = json::parse(Tp({"status", "-o", "json"}).out);
  EXPECT_EQ(document["quota"]["limits"]["gpus"], 8);
  EXPECT_EQ(json::parse(Tp({"status", "-A", "-o", "json"}).out)["quota"], nullptr);
}

TEST_F(QuotaCommandTest, DeniedIsDenied) {
  server_.script().failures["ListQuotas"] = {{grpc::StatusCode::PERMISSION_DENIED, "alice is a user"}};
  EXPECT_EQ(Tp({"admin", "quota", "list"}).exit_code, 5);
}

TEST_F(QuotaCommandTest, ASlipGetsAHint) {
  EXPECT_THAT(Tp({"admin", "quota", "sett", "alice"}).err,
              HasSubstr("no command tp admin quota sett; did you mean set?"));
  EXPECT_THAT(Tp({"admin", "quota", "set", "alice", "--gpu", "8"}).err, HasSubstr("did you mean --gpus?"));
}

TEST_F(QuotaCommandTest, UsersRulesAndSeriesAreCompleted) {
  const auto complete = [&](std::vector<std::string> words) {
    words.insert(words.begin(), "__complete");
    return Tp(words).out;
  };
  v1::Series& series = server_.script().series.emplace_back();
  series.set_name("h200");
  EXPECT_THAT(complete({"admin", "quota", "show", "a"}), StartsWith("alice\n"));
  EXPECT_THAT(complete({"admin", "quota", "unset", ""}), HasSubstr("3\talice: gpus 8, jobs 4\n"));
  EXPECT_THAT(complete({"admin", "quota", "set", "alice", "--series", "h"}), StartsWith("h200=\n"));
  EXPECT_THAT(complete({"queue", "--series", "h"}), StartsWith("h200\n"));
  EXPECT_EQ(complete({"admin", "quota", "set", "alice", "--until", ""}), "") << "a time, no state of runs";
}

}  // namespace
}  // namespace tp::cli
