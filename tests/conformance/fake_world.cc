#include <cstdlib>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "absl/time/clock.h"
#include "backends/fake/fake_backend.h"
#include "base/subprocess.h"
#include "tests/conformance/planted.h"
#include "tests/conformance/suite.h"

namespace tp::conformance {
namespace {

// Makes the suite run against a backend that breaks a rule.
constexpr char kBugVariable[] = "TP_PLANTED_BUG";

class FakeWorld final : public World {
 public:
  explicit FakeWorld(absl::Duration clock_is_ahead = absl::ZeroDuration()) : clock_is_ahead_(clock_is_ahead) {
    const char* const name = std::getenv(kBugVariable);
    if (name == nullptr) return;
    const std::optional<Bug> bug = BugNamed(name);
    if (!bug) throw std::invalid_argument(fmt::format("{}: there is no bug '{}'", kBugVariable, name));
    planted_.emplace(*bug, fake_);
  }

  Backend& backend() override { return planted_ ? static_cast<Backend&>(*planted_) : fake_; }
  void RestartBackend() override {  // the fake remembers nothing but the truth
    if (planted_) planted_->Restart();
  }
  absl::Duration Patience() const override { return planted_ ? absl::Milliseconds(300) : World::Patience(); }
  std::string deployment() const override { return "fake"; }
  std::string storage_root() const override { return "/storage"; }
  std::vector<std::string> Command() const override { return {"program"}; }

  std::vector<std::string> NoncesThatRan(const LaunchSpec& spec, int pool, int rank) override {
    return fake_.NoncesThatRan(spec.key, pool, rank);
  }
  std::string EnvSeen(const LaunchSpec& spec, int pool, int rank, const std::string& name) override {
    return fake_.EnvSeen(spec.key, pool, rank, name);
  }
  void AwaitReady(const LaunchSpec&, int, int) override {}
  int ProcessesLeft(const LaunchSpec& spec) override {
    const auto items = fake_.Inventory(absl::InfiniteFuture());
    for (const InventoryItem& item : *items) {
      if (item.key == spec.key) return 1;
    }
    return 0;
  }
  bool PauseAnnounced(const LaunchSpec& spec) override {
    const std::vector<StopLevel> stops = fake_.stops(spec.key);
    return !stops.empty() && stops.front() == StopLevel::kWarn;
  }

  void TermFromOutside(const LaunchSpec& spec, int pool, int rank) override {
    fake_.TermFromOutside(spec.key, pool, rank);
  }
  void KillRunner(const LaunchSpec& spec, int pool, int rank) override { fake_.KillRunner(spec.key, pool, rank); }
  void BreakStorage() override { fake_.SetUnreachable("the storage does not answer"); }
  void HealStorage() override { fake_.SetUnreachable(std::nullopt); }
  void CutEngine() override { fake_.SetUnreachable("the engine does not answer"); }
  void MendEngine() override { fake_.SetUnreachable(std::nullopt); }

 private:
  const absl::Duration clock_is_ahead_;
  fake::FakeBackend fake_{[this] { return absl::Now() + clock_is_ahead_; }};
  std::optional<PlantedBackend> planted_;
};

const auto kWorlds =
    ::testing::Values(WorldParam{"fake", [] { return std::make_unique<FakeWorld>(); }},
                      WorldParam{"clock_ahead", [] { return std::make_unique<FakeWorld>(absl::Hours(3)); }},
                      WorldParam{"clock_behind", [] { return std::make_unique<FakeWorld>(-absl::Hours(3)); }});
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(MemoryConformance);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(HungStorageConformance);
INSTANTIATE_TEST_SUITE_P(Fake, Conformance, kWorlds, WorldName);
INSTANTIATE_TEST_SUITE_P(Fake, EngineConformance, kWorlds, WorldName);

class PlantedBug : public ::testing::TestWithParam<Bug> {};

// The suite is run by a process of its own, since its failure is what is asked for.
TEST_P(PlantedBug, IsNoticedByTheSuite) {
  const auto result =
      RunCommand({.argv = {"/proc/self/exe", "--gtest_filter=Fake/*/fake", "--gtest_brief=1", "--gtest_fail_fast"},
                  .env = {fmt::format("{}={}", kBugVariable, NameOf(GetParam()))},
                  .stdin_bytes = {}},
                 absl::Now() + absl::Seconds(100));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->exit_code, 1) << result->out << result->err;
  EXPECT_NE(result->out.find("[  FAILED  ]"), std::string::npos) << result->out;
}

INSTANTIATE_TEST_SUITE_P(Fake, PlantedBug, ::testing::ValuesIn(AllBugs()),
                         [](const auto& planted) { return std::string(NameOf(planted.param)); });

}  // namespace
}  // namespace tp::conformance
