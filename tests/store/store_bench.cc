// store_bench DIRECTORY: commits a second at 1, 10 and 100 steps a commit, beside what the disk can do at
// most: appending and syncing as many bytes as a small commit's log takes.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>

#include "author.h"
#include "base/fd.h"
#include "store/open.h"

namespace {

using tp::core::JobState;
using tp::store::At;
using tp::store::Author;
using Clock = std::chrono::steady_clock;

constexpr auto kLength = std::chrono::seconds(3);

// Calls a second.
double Rate(const std::function<void()>& call) {
  int64_t calls = 0;
  const Clock::time_point start = Clock::now();
  while (Clock::now() - start < kLength) {
    call();
    ++calls;
  }
  return static_cast<double>(calls) / std::chrono::duration<double>(Clock::now() - start).count();
}

void Require(const absl::Status& status) {
  if (status.ok()) return;
  fmt::print(stderr, "{}\n", status.ToString());
  std::exit(1);
}

// A step with an attempt on two nodes of eight cards, as one that RUNs has it.
tp::core::Step RunningStep(tp::core::StepRef ref) {
  tp::core::Step step = Author::QueuedStep(ref);
  step.spec.env = {{"SEED", "1"}, {"DATA", "/data/set"}};
  step.attempt.emplace();
  step.attempt->key = fmt::format("tp-lab-e1-{}-s0-a1", ref.run);
  step.attempt->nonce = std::string(32, 'f');
  step.attempt->placement.resize(1);
  for (int i = 0; i < 2; ++i) {
    step.attempt->placement[0].ranks.push_back({fmt::format("node-{}", i), "127.0.0.1", {0, 1, 2, 3, 4, 5, 6, 7}});
    tp::RankObservation rank;
    rank.rank = i;
    rank.started = tp::StartRecord{step.attempt->nonce, {"node", "boot", 1, 2}, 0};
    step.attempt->ranks.push_back(rank);
  }
  return step;
}

void MoveSteps(tp::store::SqliteStore& store, Author& author, int64_t first_run, int steps) {
  for (int i = 0; i < steps; ++i) author.Enter(RunningStep({first_run + i, 0}), JobState::kRunning, At(1));
  Require(store.Commit(author.Take()));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    fmt::print(stderr, "usage: store_bench DIRECTORY\n");
    return 64;
  }
  const std::string directory = std::string(argv[1]) + "/store_bench";
  std::filesystem::create_directory(directory);
  {
    const tp::UniqueFd fd(open((directory + "/raw").c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    const std::string page(4 * 4096, 'x');
    const double rate = Rate([&] {
      if (write(fd.get(), page.data(), page.size()) < 0 || fdatasync(fd.get()) != 0) std::exit(1);
    });
    fmt::print("the disk: {:.0f} times 16 KiB appended and synced a second\n", rate);
  }
  {
    auto opened = tp::store::OpenStore(directory);
    Require(opened.status());
    Author author(opened->store->meta());
    for (int i = 0; i < 100; ++i) author.NewRun("ana");
    Require(opened->store->Commit(author.Take()));
    for (const int steps : {1, 10, 100}) {
      const double rate = Rate([&] { MoveSteps(*opened->store, author, 1, steps); });
      fmt::print("{:3} steps a commit: {:6.0f} commits, {:7.0f} steps a second\n", steps, rate, rate * steps);
    }
    const double submits = Rate([&] {
      author.NewRun("ana");
      Require(opened->store->Commit(author.Take()));
    });
    fmt::print("submissions, one a commit: {:.0f} a second\n", submits);
    const double pages = Rate([&] { Require(opened->reader->ListRuns({}, std::nullopt, 50).status()); });
    fmt::print("pages of 50 runs: {:.0f} a second\n", pages);
  }
  std::filesystem::remove_all(directory);
  return 0;
}
