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

TEST(GpuReport, ReadsWhatIsThere) {
  const GpuReport report = ParseGpuQuery(kTwoCards);
  EXPECT_THAT(report.cards,
              ElementsAre(GpuSight{0, "0000:07:00", 98, 0}, GpuSight{1, "0000:65:00", std::nullopt, std::nullopt}));
  EXPECT_THAT(report.faults, IsEmpty());
  EXPECT_THAT(FindBrokenCards(report, {}, 2), IsEmpty());
}

TEST(GpuReport, ALostCardIsMissing) {
  const GpuReport report = ParseGpuQuery(
      "1, 00000000:65:00.0, 0, 0\r\n"
      "Unable to determine the device handle for GPU0000:07:00.0: GPU is lost.  Reboot the system\n");
  EXPECT_THAT(FindBrokenCards(report, {}, 2),
              ElementsAre(BrokenCard{0,
                                     "nvidia-smi does not list it: Unable to determine the device handle for "
                                     "GPU0000:07:00.0: GPU is lost.  Reboot the system"}));
}

TEST(GpuReport, NonsenseIsNoCard) {
  for (const char* text : {"", "\n\n", "No devices were found\n", "0, , ,\n", "-1, 00000000:07:00.0, 0, 0\n",
                           "0, 00000000:07:00.0, 0, 0, 0\n", "x, 00000000:07:00.0, 0, 0\n", ",,,\n", "\x1b[31m"}) {
    EXPECT_THAT(ParseGpuQuery(text).cards, IsEmpty()) << text;
  }
}

TEST(GpuReport, MemoryErrorsBreakACard) {
  EXPECT_THAT(FindBrokenCards(ParseGpuQuery("0, 00000000:07:00.0, 0, 3\n"), {}, 1),
              ElementsAre(BrokenCard{0, "3 memory errors that ECC could not correct since the driver started"}));
}

TEST(Xids, AreFoundInTheKernelsLog) {
  const auto xids = ParseXids(
      "[ 1.0] nvidia: loading\n"
      "[ 9.5] NVRM: Xid (PCI:0000:65:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.\n"
      "<3>NVRM: Xid (PCI:0000:07:00): 31, pid=77, MMU Fault\n"
      "NVRM: Xid (0000:07:00): 13\n"
      "NVRM: Xid (PCI:garbage): 79, x\nNVRM: Xid (PCI:0000:07:00): x, y\nNVRM: Xid (\n");
  EXPECT_THAT(xids, ElementsAre(Xid{"0000:65:00", 79, "pid='<unknown>', name=<unknown>, GPU has fallen off the bus."},
                                Xid{"0000:07:00", 31, "pid=77, MMU Fault"}, Xid{"0000:07:00", 13, ""}));
}

TEST(Xids, OnlyThoseThatNeedServiceBreakACard) {
  const GpuReport report = ParseGpuQuery(kTwoCards);
  EXPECT_THAT(FindBrokenCards(report,
                              {{"0000:07:00", 31, "MMU Fault"},
                               {"0000:65:00", 79, "fallen off the bus"},
                               {"0000:99:00", 79, "of another machine"}},
                              2),
              ElementsAre(BrokenCard{1, "Xid 79: fallen off the bus"}));
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

TEST_F(GpuToolTest, AsksTheCardsAndTheKernel) {
  Tool("nvidia-smi",
       "[ \"$1\" = --query-gpu=index,pci.bus_id,utilization.gpu,ecc.errors.uncorrected.volatile.total ] || exit 6\n"
       "echo '0, 00000000:07:00.0, 0, 0'; echo '1, 00000000:65:00.0, 0, 0'; exit 15");
  EXPECT_THAT(*Find().FindBroken(2, Soon()), IsEmpty());
  Tool("dmesg", "echo 'NVRM: Xid (PCI:0000:65:00): 79, pid=1, GPU has fallen off the bus.'");
  EXPECT_THAT(*Find().FindBroken(2, Soon()), ElementsAre(BrokenCard{1, "Xid 79: pid=1, GPU has fallen off the bus."}));
  Tool("dmesg", "exit 1");
  EXPECT_THAT(*Find().FindBroken(2, Soon()), IsEmpty());
}

TEST_F(GpuToolTest, AToolThatHangsSaysNothing) {
  Tool("nvidia-smi", "sleep 60");
  EXPECT_TRUE(absl::IsDeadlineExceeded(Find().FindBroken(1, absl::Now() + absl::Milliseconds(100)).status()));
}

}  // namespace
}  // namespace tp::launch
