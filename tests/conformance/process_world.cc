#include "tests/conformance/process_world.h"

#include <signal.h>

#include <filesystem>
#include <functional>
#include <sstream>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "absl/time/clock.h"
#include "backends/local/processes.h"
#include "backends/local/rank_tool.h"
#include "launch/record.h"

namespace tp::conformance {
namespace {

using ::tp::testing::ReadText;
using ::tp::testing::WriteText;
namespace fs = std::filesystem;

constexpr char kProgram[] = R"(
witness=$TP_TEST_WITNESS
echo "$TP_TEST_NONCE" >> "$witness.nonces"
env -0 > "$witness.env.new" && mv "$witness.env.new" "$witness.env"
set -- $TP_TEST_PROGRAM
case $1 in
  exit) exit "$2" ;;
  raise) kill -"$2" $$ ;;
  trap) trap "exit $2" TERM ;;
  eat) exec dd if=/dev/zero of=/dev/null bs=256M count=1 2>/dev/null ;;
esac
# A grandchild that left the session is of the tree all the same.
setsid sleep 600 &
touch "$witness.ready"
while :; do sleep 0.02; done
)";

std::string WitnessOf(const LaunchSpec& spec, int pool, int rank) {
  return fmt::format("{}/witness-{}-{}", spec.paths.output_dir, pool, rank);
}

void AwaitFile(const std::function<std::string()>& where) {
  const absl::Time limit = absl::Now() + absl::Seconds(30);
  while (!fs::exists(where()) && absl::Now() < limit) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  ASSERT_TRUE(fs::exists(where())) << where();
}

}  // namespace

ProcessWorld::ProcessWorld(std::string rank_binary)
    : rank_binary_(std::move(rank_binary)), deployment_("t" + RandomName().substr(0, 8)) {
  fs::create_directories(storage_root());
  WriteText(dir_.At("program.sh"), kProgram);
}

ProcessWorld::~ProcessWorld() { KillProcesses(); }

void ProcessWorld::KillProcesses() const {
  const std::string mine = fmt::format("TP_TEST_WITNESS={}", storage_root());
  const std::string launched = fmt::format("{}tp-{}-", local::kLaunchMark, deployment_);
  for (int round = 0; round < 200; ++round) {
    int left = 0;
    for (const std::string& mark : {mine, launched}) {
      const auto processes = local::FindMarkedProcesses(mark);
      for (const local::MarkedProcess& process : *processes) {
        kill(process.stat.pid, SIGKILL);
        ++left;
      }
    }
    if (left == 0) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

std::vector<std::string> ProcessWorld::NoncesThatRan(const LaunchSpec& spec, int pool, int rank) {
  std::istringstream text(ReadText(SeenBy(rank, WitnessOf(spec, pool, rank) + ".nonces")));
  std::vector<std::string> nonces;
  for (std::string line; std::getline(text, line);) nonces.push_back(line);
  return nonces;
}

std::string ProcessWorld::EnvSeen(const LaunchSpec& spec, int pool, int rank, const std::string& name) {
  const auto path = [&] { return SeenBy(rank, WitnessOf(spec, pool, rank) + ".env"); };
  AwaitFile(path);
  std::istringstream text(ReadText(path()));
  for (std::string entry; std::getline(text, entry, '\0');) {
    if (entry.starts_with(name + "=")) return entry.substr(name.size() + 1);
  }
  return "";
}

void ProcessWorld::AwaitReady(const LaunchSpec& spec, int pool, int rank) {
  AwaitFile([&] { return SeenBy(rank, WitnessOf(spec, pool, rank) + ".ready"); });
}

int ProcessWorld::ProcessesLeft(const LaunchSpec& spec) {
  return static_cast<int>(
      local::FindMarkedProcesses(fmt::format("TP_TEST_WITNESS={}/", spec.paths.output_dir))->size());
}

bool ProcessWorld::PauseAnnounced(const LaunchSpec& spec) {
  return fs::exists(SeenBy(0, spec.paths.attempt_dir + "/pause"));
}

pid_t ProcessWorld::RunnerOf(const LaunchSpec& spec, int pool, int rank) const {
  const std::string path = fmt::format("{}/{}-{}.claim", spec.paths.attempt_dir, pool, rank);
  AwaitFile([&] { return path; });
  const auto claim = launch::ParseRankClaim(ReadText(path), {spec.key, pool, rank});
  return claim ? static_cast<pid_t>(claim->runner_pid) : 0;
}

void ProcessWorld::BreakStorage() {
  fs::rename(storage_root(), dir_.At("away"));
  fs::create_directories(storage_root());
}

void ProcessWorld::HangStorageOf(const LaunchSpec& spec) { hung_.emplace(spec.paths.attempt_dir); }

void ProcessWorld::HealStorage() {
  fs::remove(storage_root());
  fs::rename(dir_.At("away"), storage_root());
}

}  // namespace tp::conformance
