#include "tpd/checkpoint_scan.h"

#include <sys/stat.h>

#include <chrono>
#include <string>
#include <utility>

#include <spdlog/spdlog.h>
#include <nlohmann/json.hpp>

#include "api/run_directories.h"
#include "base/file.h"
#include "base/printable.h"
#include "base/status.h"
#include "base/walk_tree.h"
#include "core/array.h"
#include "tpd/give_way.h"

namespace tp::tpd {
namespace {

// What lies beyond has no checkpoint that is worth the wait.
constexpr int kMaxEntries = 100'000;
constexpr size_t kMetricsEndBytes = 64 * 1024;

// A name for people, whatever the job called it.
std::string Shown(const std::string& path) {
  const std::string quoted = Quoted(path);
  return quoted.substr(1, quoted.size() - 2);
}

// Clocks differ a little.
constexpr absl::Duration kAhead = absl::Minutes(1);

void TakeNewer(std::optional<core::Checkpoint>& newest, std::optional<core::Checkpoint> other) {
  if (other && (!newest || newest->written_at < other->written_at)) newest = std::move(other);
}

}  // namespace

std::optional<core::Checkpoint> CheckpointInMetrics(std::string_view lines, absl::Time latest) {
  std::optional<core::Checkpoint> newest;
  while (!lines.empty()) {
    const size_t end = lines.find('\n');
    if (end == std::string_view::npos) break;  // torn
    const auto line = nlohmann::json::parse(lines.substr(0, end), nullptr, false);
    lines.remove_prefix(end + 1);
    if (!line.is_object() || !line.contains("checkpoint") || !line.contains("time")) continue;
    const auto& name = line["checkpoint"];
    const auto& time = line["time"];
    if (!name.is_string() || !time.is_number()) continue;
    const absl::Time written_at = absl::UnixEpoch() + absl::Seconds(time.get<double>());
    if (written_at < absl::UnixEpoch() || written_at > latest) continue;
    TakeNewer(newest, core::Checkpoint{Shown(name.get<std::string>()), written_at});
  }
  return newest;
}

CheckpointScan::CheckpointScan(CheckpointScanOptions options)
    : options_(std::move(options)), thread_([this] { Work(); }) {}

CheckpointScan::~CheckpointScan() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void CheckpointScan::Wake() {
  {
    const std::lock_guard lock(mutex_);
    woken_ = true;
  }
  changed_.notify_all();
}

bool CheckpointScan::Stopped() {
  const std::lock_guard lock(mutex_);
  return stopped_;
}

void CheckpointScan::Work() {
  GiveWay();
  const auto interval = absl::ToChronoMilliseconds(options_.interval);
  auto next_whole = std::chrono::steady_clock::now();
  Which which = Which::kAll;
  for (;;) {
    if (const absl::Status status = Round(which); !status.ok()) {
      spdlog::warn("checkpoints could not be looked for, the next round tries again: {}", Message(status));
    }
    if (which == Which::kAll) next_whole = std::chrono::steady_clock::now() + interval;
    std::unique_lock lock(mutex_);
    const bool woken = changed_.wait_until(lock, next_whole, [this] { return stopped_ || woken_; });
    if (stopped_) return;
    which = woken ? Which::kEnded : Which::kAll;
    woken_ = false;
  }
}

bool CheckpointScan::IsDue(const core::Step& step, Which which) const {
  if (step.attempt) return which == Which::kAll && step.attempt->meter;
  const bool paused = step.state == core::JobState::kPaused && !step.past.empty();
  return paused && !ended_.contains({step.ref, step.attempts});
}

absl::Status CheckpointScan::Round(Which which) {
  TP_ASSIGN_OR_RETURN(const std::vector<core::RunWithSteps> runs, options_.runs());
  loop::CheckpointsSeen seen;
  for (const core::RunWithSteps& run : runs) {
    if (core::IsArray(run)) continue;
    for (const core::Step& step : run.steps) {
      if (!IsDue(step, which)) continue;
      core::CheckpointSight sight;
      sight.attempt = step.attempts;
      sight.looked_at = options_.now();
      sight.after_end = !step.attempt;
      sight.newest = NewestOf(run, step);
      if (sight.after_end) ended_.insert({step.ref, step.attempts});
      seen.seen.emplace_back(step.ref, std::move(sight));
    }
    if (Stopped()) return absl::OkStatus();
  }
  if (!seen.seen.empty()) options_.found(std::move(seen));
  return absl::OkStatus();
}

// What can't be read says nothing: a job may have put anything there.
std::optional<core::Checkpoint> CheckpointScan::NewestOf(const core::RunWithSteps& run, const core::Step& step) {
  const absl::Time latest = options_.now() + kAhead;
  std::optional<core::Checkpoint> newest;
  const auto attempt = api::OpenAttemptDirectory(options_.layout, run.run, step, step.attempts);
  if (attempt.ok()) {
    const auto metrics = ReadFileEnd(*attempt, "metrics.jsonl", kMetricsEndBytes);
    if (metrics.ok() && *metrics) newest = CheckpointInMetrics(**metrics, latest);
  }
  const auto directory = api::OpenRunDirectory(options_.layout, run.run);
  if (!directory.ok()) return newest;
  int entries = 0;
  const auto visit = [&](const WalkedEntry& entry) {
    ++entries;
    if (!S_ISREG(entry.about.st_mode)) return;
    const absl::Time written_at = absl::TimeFromTimespec(entry.about.st_mtim);
    if (written_at > latest || (newest && written_at <= newest->written_at)) return;
    const std::string path = entry.folder + entry.name;
    if (core::IsCheckpointPath(path)) newest = core::Checkpoint{Shown(path), written_at};
  };
  WalkTree(*directory, "output", visit, [&] { return entries > kMaxEntries || Stopped(); }).IgnoreError();
  return newest;
}

}  // namespace tp::tpd
