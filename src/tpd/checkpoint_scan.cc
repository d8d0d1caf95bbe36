#include "tpd/checkpoint_scan.h"

#include <sys/stat.h>

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

void TakeNewer(std::optional<core::Checkpoint>& newest, std::optional<core::Checkpoint> other) {
  if (other && (!newest || newest->written_at < other->written_at)) newest = std::move(other);
}

bool IsWatched(const core::Step& step) {
  const bool runs = step.attempt && step.attempt->meter;
  return runs || (step.state == core::JobState::kPaused && !step.past.empty());
}

}  // namespace

std::optional<core::Checkpoint> CheckpointInMetrics(std::string_view lines) {
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
    TakeNewer(newest,
              core::Checkpoint{Shown(name.get<std::string>()), absl::UnixEpoch() + absl::Seconds(time.get<double>())});
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
  const auto interval = absl::ToChronoMilliseconds(options_.interval);
  for (;;) {
    if (const absl::Status status = Round(); !status.ok()) {
      spdlog::warn("checkpoints could not be looked for, the next round tries again: {}", Message(status));
    }
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, interval, [this] { return stopped_ || woken_; });
    if (stopped_) return;
    woken_ = false;
  }
}

absl::Status CheckpointScan::Round() {
  TP_ASSIGN_OR_RETURN(const std::vector<core::RunWithSteps> runs, options_.runs());
  loop::CheckpointsSeen seen;
  for (const core::RunWithSteps& run : runs) {
    if (core::IsArray(run)) continue;
    for (const core::Step& step : run.steps) {
      if (!IsWatched(step)) continue;
      core::CheckpointSight sight;
      sight.attempt = step.attempts;
      sight.looked_at = options_.now();
      sight.after_end = !step.attempt;
      sight.newest = NewestOf(run, step);
      seen.seen.emplace_back(step.ref, std::move(sight));
    }
    if (Stopped()) return absl::OkStatus();
  }
  if (!seen.seen.empty()) options_.found(std::move(seen));
  return absl::OkStatus();
}

// What can't be read says nothing: a job may have put anything there.
std::optional<core::Checkpoint> CheckpointScan::NewestOf(const core::RunWithSteps& run, const core::Step& step) {
  std::optional<core::Checkpoint> newest;
  const auto attempt = api::OpenAttemptDirectory(options_.layout, run.run, step, step.attempts);
  if (attempt.ok()) {
    const auto metrics = ReadFileEnd(*attempt, "metrics.jsonl", kMetricsEndBytes);
    if (metrics.ok() && *metrics) newest = CheckpointInMetrics(**metrics);
  }
  const auto directory = api::OpenRunDirectory(options_.layout, run.run);
  if (!directory.ok()) return newest;
  int entries = 0;
  const auto visit = [&](const WalkedEntry& entry) {
    ++entries;
    if (!S_ISREG(entry.about.st_mode)) return;
    const absl::Time written_at = absl::TimeFromTimespec(entry.about.st_mtim);
    if (newest && written_at <= newest->written_at) return;
    const std::string path = entry.folder + entry.name;
    if (core::IsCheckpointPath(path)) newest = core::Checkpoint{Shown(path), written_at};
  };
  WalkTree(*directory, "output", visit, [&] { return entries > kMaxEntries || Stopped(); }).IgnoreError();
  return newest;
}

}  // namespace tp::tpd
