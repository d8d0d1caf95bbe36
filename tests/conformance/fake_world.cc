#include <gtest/gtest.h>

#include "absl/time/clock.h"
#include "backends/fake/fake_backend.h"
#include "tests/conformance/suite.h"

namespace tp::conformance {
namespace {

class FakeWorld final : public World {
 public:
  Backend& backend() override { return fake_; }
  void RestartBackend() override {}  // it remembers nothing but the truth
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
  fake::FakeBackend fake_{[] { return absl::Now(); }};
};

const auto kWorlds = ::testing::Values(WorldParam{"fake", [] { return std::make_unique<FakeWorld>(); }});
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(MemoryConformance);
INSTANTIATE_TEST_SUITE_P(Fake, Conformance, kWorlds, WorldName);
INSTANTIATE_TEST_SUITE_P(Fake, EngineConformance, kWorlds, WorldName);

}  // namespace
}  // namespace tp::conformance
