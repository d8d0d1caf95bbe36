#include "backends/node/card_look.h"

#include <filesystem>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/time/clock.h"
#include "base/subprocess.h"
#include "tests/launch/temp_dir.h"

namespace tp::node {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A machine whose tools are scripts of the test.
class CardLook : public ::testing::Test {
 protected:
  void Tool(const std::string& name, const std::string& script) {
    const std::string path = dir_.At(name);
    tp::testing::WriteText(path, "#!/bin/sh\n" + script);
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  }

  HostReply Look(const std::string& shell = "/bin/sh") {
    const auto result = RunCommand({.argv = {shell, "-c", LookAtCardsProgram()},
                                    .env = {"PATH=" + dir_.At("") + ":/usr/bin:/bin", "TMPDIR=" + dir_.At("")},
                                    .stdin_bytes = {}},
                                   absl::Now() + absl::Seconds(30));
    EXPECT_TRUE(result.ok()) << result.status();
    const auto reply = ParseReply(result.ok() ? result->out : "");
    EXPECT_TRUE(reply);
    return reply.value_or(HostReply());
  }

  tp::testing::TempDir dir_;
};

constexpr char kAnswers[] =
    "case $1 in\n"
    "--query-gpu=*) echo '0, 00000000:07:00.0, 3, 0'; echo '1, 00000000:65:00.0, 0, 2' ;;\n"
    "--query-compute-apps=*) echo '00000000:07:00.0, 4711, /usr/bin/python' ;;\n"
    "esac\n";

TEST_F(CardLook, WithoutTheToolNothingIsSaid) {
  const HostReply reply = Look();
  EXPECT_THAT(reply.gpu, IsEmpty());
  EXPECT_FALSE(CardsIn(reply));
  EXPECT_FALSE(HungIn(reply));
}

TEST_F(CardLook, BringsCardsProcessesAndTheKernelsWord) {
  Tool("nvidia-smi", kAnswers);
  Tool("dmesg", "echo '[ 7.5] NVRM: Xid (PCI:0000:07:00): 79, pid=1, GPU has fallen off the bus.'; echo noise");
  for (const char* shell : {"/bin/sh", "/bin/bash"}) {
    const auto look = CardsIn(Look(shell));
    ASSERT_TRUE(look) << shell;
    EXPECT_GT(look->uptime_s, 0);
    EXPECT_THAT(
        launch::StatesOf(*look, 2),
        ElementsAre(launch::GpuState{.index = 0,
                                     .broken = "Xid 79: pid=1, GPU has fallen off the bus.",
                                     .broke_at = look->at - absl::Seconds(look->uptime_s - 7.5),
                                     .utilization_percent = 3,
                                     .held_by = "process 4711 (python)"},
                    launch::GpuState{.index = 1,
                                     .broken = "2 memory errors that ECC could not correct since the driver started",
                                     .utilization_percent = 0}));
  }
  for (const auto& left : std::filesystem::directory_iterator(dir_.At(""))) {
    EXPECT_NE(left.path().filename().string().substr(0, 3), "tp-") << "nothing is left behind";
  }
}

TEST_F(CardLook, ADriverThatFailsHoldsItsCardsAndBreaksNone) {
  for (const auto& [tool, why] : {std::pair{"echo 'NVIDIA-SMI has failed'; exit 9", "NVIDIA-SMI has failed"},
                                  std::pair{"exit 3", "it ended with 3"}}) {
    Tool("nvidia-smi", tool);
    const auto look = CardsIn(Look());
    ASSERT_TRUE(look) << why;
    EXPECT_EQ(look->report.cut_short, why);
    EXPECT_THAT(
        launch::StatesOf(*look, 1),
        ElementsAre(launch::GpuState{.index = 0, .held_by = fmt::format("a driver that fails (nvidia-smi: {})", why)}));
  }
}

TEST_F(CardLook, AToolThatIsCutShortByTheClockHangs) {
  Tool("nvidia-smi", kAnswers);
  Tool("timeout", "exit 124");
  EXPECT_TRUE(HungIn(Look()));
}

TEST_F(CardLook, AToolThatHangsBoundsItself) {
  Tool("nvidia-smi", "trap '' TERM\nsleep 60");
  const absl::Time began = absl::Now();
  const HostReply reply = Look();
  EXPECT_LT(absl::Now() - began, absl::Seconds(15));
  EXPECT_TRUE(HungIn(reply));
  EXPECT_FALSE(CardsIn(reply));
}

// As where the disk is full that it goes through.
TEST(CardsIn, OutputWithoutItsEndBreaksNoCard) {
  HostReply reply;
  reply.gpu = {"card 0, 00000000:07:00.0, 3, 0", "process status 0", "end"};
  const auto look = CardsIn(reply);
  ASSERT_TRUE(look);
  EXPECT_THAT(launch::FindBrokenCards(look->report, look->xids, 2), IsEmpty());
  EXPECT_EQ(launch::StatesOf(*look, 2)[1].held_by, "a driver that fails (nvidia-smi: its answer was cut short)");
}

TEST(CardsIn, AnAnswerThatWasCutShortSaysNothing) {
  HostReply reply;
  reply.gpu = {"card 0, 00000000:07:00.0, 3, 0", "card status 0", "process status 0"};
  EXPECT_FALSE(CardsIn(reply));
  reply.gpu.emplace_back("end");
  ASSERT_TRUE(CardsIn(reply));
  EXPECT_EQ(CardsIn(reply)->report.cards.size(), 1u);
}

}  // namespace
}  // namespace tp::node
