#include "launch/gpu_report.h"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/time/clock.h"
#include "launch/gpu_tool.h"
#include "tests/launch/temp_dir.h"

namespace tp::launch {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr char kTwoCards[] =
    "0, 00000000:07:00.0, 98, 0\n"
    "1, 00000000:65:00.0, [N/A], [N/A]\n";

LaunchSpec OnCards(const std::vector<int>& cards) {
  LaunchSpec spec;
  spec.demands.resize(1);
  spec.ranks.push_back({.pool = 0, .rank = 0, .placement = {"n1", "127.0.0.1", cards}, .env = {}});
  return spec;
}

TEST(GpuReport, ReadsWhatIsThere) {
  const GpuReport report = ParseGpuQuery(kTwoCards, 0);
  EXPECT_THAT(report.cards,
              ElementsAre(GpuSight{0, "0000:07:00", 98, 0}, GpuSight{1, "0000:65:00", std::nullopt, std::nullopt}));
  EXPECT_THAT(report.faults, IsEmpty());
  EXPECT_THAT(FindBrokenCards(report, {}, 2), IsEmpty());
}

TEST(GpuReport, ALostCardIsMissing) {
  const GpuReport report = ParseGpuQuery(
      "1, 00000000:65:00.0, 0, 0\r\n"
      "Unable to determine the device handle for GPU0000:07:00.0: GPU is lost.  Reboot the system\n",
      15);
  EXPECT_THAT(FindBrokenCards(report, {}, 2),
              ElementsAre(BrokenCard{0,
                                     "nvidia-smi does not list it: Unable to determine the device handle for "
                                     "GPU0000:07:00.0: GPU is lost.  Reboot the system"}));
}

// A tool that was killed, a driver that was exchanged, or one lost card that keeps the tool from listing the others.
TEST(GpuReport, AToolThatFailsBreaksNoCard) {
  struct Case {
    const char* text;
    int exit_code;
    const char* why;
  };
  for (const Case& each : {Case{"", -1, "its answer was cut short"}, Case{"", 0, "it ended with 0"},
                           Case{"Failed to initialize NVML: Driver/library version mismatch\n", 18,
                                "Failed to initialize NVML: Driver/library version mismatch"},
                           Case{"Unable to determine the device handle for GPU0000:07:00.0: Unknown Error\n", 255,
                                "Unable to determine the device handle for GPU0000:07:00.0: Unknown Error"}}) {
    const GpuLook look{.report = ParseGpuQuery(each.text, each.exit_code), .xids = {}, .processes = {}};
    EXPECT_THAT(FindBrokenCards(look.report, look.xids, 4), IsEmpty()) << each.why;
    for (const GpuState& card : StatesOf(look, 4)) {
      EXPECT_EQ(card.held_by, fmt::format("a driver that fails (nvidia-smi: {})", each.why));
    }
    EXPECT_EQ(PreflightProblem(look, OnCards({2})),
              fmt::format("nvidia-smi does not tell of card 2 of n1: {}", each.why));
  }
  const GpuLook some{.report = ParseGpuQuery("1, 00000000:65:00.0, 0, 0\n", 255), .xids = {}, .processes = {}};
  EXPECT_THAT(StatesOf(some, 2)[0].held_by, ::testing::HasSubstr("it ended with 255"));
  EXPECT_EQ(StatesOf(some, 2)[1], (GpuState{.index = 1, .utilization_percent = 0}));
}

TEST(GpuReport, NonsenseIsNoCard) {
  for (const char* text : {"", "\n\n", "No devices were found\n", "0, , ,\n", "-1, 00000000:07:00.0, 0, 0\n",
                           "0, 00000000:07:00.0, 0, 0, 0\n", "x, 00000000:07:00.0, 0, 0\n", ",,,\n", "\x1b[31m"}) {
    EXPECT_THAT(ParseGpuQuery(text, 0).cards, IsEmpty()) << text;
  }
}

TEST(GpuReport, MemoryErrorsBreakACard) {
  EXPECT_THAT(FindBrokenCards(ParseGpuQuery("0, 00000000:07:00.0, 0, 3\n", 0), {}, 1),
              ElementsAre(BrokenCard{0, "3 memory errors that ECC could not correct since the driver started"}));
}

TEST(Xids, AreFoundInTheKernelsLog) {
  const auto xids = ParseXids(
      "[ 1.0] nvidia: loading\n"
      "[ 9.5] NVRM: Xid (PCI:0000:65:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.\n"
      "<3>NVRM: Xid (PCI:0000:07:00): 31, pid=77, MMU Fault\n"
      "NVRM: Xid (0000:07:00): 13\n"
      "NVRM: Xid (PCI:garbage): 79, x\nNVRM: Xid (PCI:0000:07:00): x, y\nNVRM: Xid (\n");
  EXPECT_THAT(xids,
              ElementsAre(Xid{"0000:65:00", 79, "pid='<unknown>', name=<unknown>, GPU has fallen off the bus.", 9.5},
                          Xid{"0000:07:00", 31, "pid=77, MMU Fault"}, Xid{"0000:07:00", 13, ""}));
}

TEST(Xids, OnlyThoseThatNeedServiceBreakACard) {
  const GpuReport report = ParseGpuQuery(kTwoCards, 0);
  EXPECT_THAT(FindBrokenCards(report,
                              {{"0000:07:00", 31, "MMU Fault"},
                               {"0000:65:00", 79, "fallen off the bus"},
                               {"0000:99:00", 79, "of another machine"}},
                              2),
              ElementsAre(BrokenCard{1, "Xid 79: fallen off the bus"}));
}

TEST(Xids, TheNewestOfACardIsTold) {
  GpuLook look{.report = ParseGpuQuery(kTwoCards, 0),
               .xids = {{"0000:65:00", 48, "first", 100.0},
                        {"0000:65:00", 31, "harmless", 300.0},
                        {"0000:65:00", 95, "second", 200.0}},
               .processes = {},
               .uptime_s = 1000,
               .at = absl::FromUnixSeconds(50'000)};
  EXPECT_THAT(FindBrokenCards(look.report, look.xids, 2), ElementsAre(BrokenCard{1, "Xid 95: second", 200.0}));
  EXPECT_EQ(StatesOf(look, 2)[1].broke_at, absl::FromUnixSeconds(49'200));
}

class GpuToolTest : public ::testing::Test {
 protected:
  void Tool(const std::string& name, const std::string& script) {
    const std::string path = dir_.At(name);
    tp::testing::WriteText(path, "#!/bin/sh\n" + script);
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  }
  GpuTool Find() const { return GpuTool("relative:" + dir_.At("")); }
  static absl::Time Soon() { return absl::Now() + absl::Seconds(10); }

  tp::testing::TempDir dir_;
};

TEST_F(GpuToolTest, AMachineWithoutTheToolHasNothingToSay) { EXPECT_FALSE(Find().available()); }

constexpr char kAnswers[] =
    "case \"$1\" in\n"
    "--query-gpu=index,pci.bus_id,utilization.gpu,ecc.errors.uncorrected.volatile.total)\n"
    "  echo '0, 00000000:07:00.0, 0, 0'; echo '1, 00000000:65:00.0, 7, 0'; exit 15 ;;\n"
    "--query-compute-apps=gpu_bus_id,pid,process_name)\n"
    "  echo '00000000:07:00.0, 12, nvidia-cuda-mps-server'; echo '00000000:65:00.0, 4711, /usr/bin/python3.11' ;;\n"
    "*) exit 6 ;;\n"
    "esac\n";

std::vector<GpuState> Look(const GpuTool& tool) {
  const auto look = tool.Look(absl::Now() + absl::Seconds(10));
  return look.ok() ? StatesOf(*look, 2) : std::vector<GpuState>();
}

TEST_F(GpuToolTest, AsksTheCardsAndTheKernel) {
  Tool("nvidia-smi", kAnswers);
  EXPECT_THAT(Look(Find()),
              ElementsAre(GpuState{.index = 0, .utilization_percent = 0},
                          GpuState{.index = 1, .utilization_percent = 7, .held_by = "process 4711 (python3.11)"}));
  Tool("dmesg", "echo 'NVRM: Xid (PCI:0000:65:00): 79, pid=1, GPU has fallen off the bus.'");
  EXPECT_EQ(Look(Find())[1].broken, "Xid 79: pid=1, GPU has fallen off the bus.");
  Tool("dmesg", "exit 1");
  EXPECT_EQ(Look(Find())[1].broken, "");
}

TEST_F(GpuToolTest, AToolThatHangsSaysNothing) {
  Tool("nvidia-smi", "sleep 60");
  EXPECT_TRUE(absl::IsDeadlineExceeded(Find().Look(absl::Now() + absl::Milliseconds(100)).status()));
  EXPECT_EQ(Preflight(Find(), OnCards({0}), absl::Now() + absl::Milliseconds(100)), "");
}

TEST_F(GpuToolTest, APreflightNeedsTheToolAndRealCards) {
  EXPECT_EQ(Preflight(Find(), OnCards({7}), Soon()), "");
  Tool("nvidia-smi", kAnswers);
  EXPECT_EQ(Preflight(Find(), OnCards({0}), Soon()), "");
  EXPECT_EQ(Preflight(Find(), OnCards({7}), Soon()), "card 7 of n1 is not there: nvidia-smi does not list it");
  LaunchSpec declared = OnCards({7});
  declared.demands[0].virtual_cards = true;
  EXPECT_EQ(Preflight(Find(), declared, Soon()), "");
}

TEST(Preflight, NamesWhatKeepsAJobOff) {
  GpuLook look{.report = ParseGpuQuery(kTwoCards, 0), .xids = {}, .processes = {}, .uptime_s = 1000};
  EXPECT_EQ(PreflightProblem(look, OnCards({0, 1})), "");
  look.processes = ParseGpuProcesses("00000000:65:00.0, 4711, python\n");
  EXPECT_EQ(PreflightProblem(look, OnCards({0})), "");
  EXPECT_EQ(PreflightProblem(look, OnCards({0, 1})),
            "card 1 of n1 is in use by process 4711 (python), which is not tp's: end it there, or wait for it");
}

// What looks have seen before is their business: who has put the card into service again knew of it.
TEST(Preflight, OnlyAFreshErrorCounts) {
  GpuLook look{.report = ParseGpuQuery(kTwoCards, 0), .xids = {}, .processes = {}, .uptime_s = 1000};
  look.xids = {{"0000:07:00", 79, "fallen off the bus", 900.0}, {"0000:07:00", 79, "unstamped"}};
  EXPECT_EQ(PreflightProblem(look, OnCards({0})), "");
  look.xids.push_back({"0000:07:00", 31, "MMU Fault", 990.0});
  EXPECT_EQ(PreflightProblem(look, OnCards({0})), "");
  look.xids.push_back({"0000:07:00", 79, "fallen off the bus", 990.0});
  EXPECT_EQ(PreflightProblem(look, OnCards({0})), "card 0 of n1 has just broken: Xid 79: fallen off the bus");
}

TEST(GpuProcesses, NonsenseIsNone) {
  for (const char* text : {"", "No running processes found\n", "00000000:65:00.0, x, python\n", ",,\n", "a, 1, b\n"}) {
    EXPECT_THAT(ParseGpuProcesses(text), IsEmpty()) << text;
  }
}

}  // namespace
}  // namespace tp::launch
