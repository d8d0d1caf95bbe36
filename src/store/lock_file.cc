#include "store/lock_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/fault_point.h"
#include "base/file.h"
#include "base/sha256.h"
#include "base/status.h"

namespace tp::store {
namespace {

constexpr size_t kSlotBytes = 512;
constexpr int kSlots = 2;
constexpr std::string_view kTitle = "tpd-lock 1\n";
constexpr std::string_view kCheck = "check=";

struct Slot {
  int64_t writes = 0;
  int64_t pid = 0;
  LockState state;
};

std::string CheckSum(std::string_view text) {
  Sha256 sha256;
  sha256.Update(text);
  return sha256.HexDigest();
}

// Text for people, one slot long.
std::string Format(const Slot& slot) {
  std::string text = fmt::format("{}writes={}\npid={}\nepoch={}\nrevision={}\nrun_mark={}\n", kTitle, slot.writes,
                                 slot.pid, slot.state.epoch, slot.state.revision, slot.state.run_mark);
  text += fmt::format("{}{}\n", kCheck, CheckSum(text));
  text.resize(kSlotBytes - 1, ' ');
  return text + "\n";
}

std::optional<int64_t> NumberOf(const std::map<std::string_view, std::string_view>& values, std::string_view name) {
  const auto found = values.find(name);
  if (found == values.end()) return std::nullopt;
  const std::string_view text = found->second;
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// Nothing where the slot was never written, or not to its end.
std::optional<Slot> Parse(std::string_view text) {
  const size_t check = text.find(kCheck);
  if (text.substr(0, kTitle.size()) != kTitle || check == std::string_view::npos) return std::nullopt;
  const std::string_view body = text.substr(0, check);
  if (text.substr(check + kCheck.size(), 64) != CheckSum(body)) return std::nullopt;
  std::map<std::string_view, std::string_view> values;
  for (std::string_view rest = body.substr(kTitle.size()); !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    const size_t equals = line.find('=');
    if (equals != std::string_view::npos) values[line.substr(0, equals)] = line.substr(equals + 1);
  }
  const auto writes = NumberOf(values, "writes");
  const auto pid = NumberOf(values, "pid");
  const auto epoch = NumberOf(values, "epoch");
  const auto revision = NumberOf(values, "revision");
  const auto run_mark = NumberOf(values, "run_mark");
  if (!writes || !pid || !epoch || !revision || !run_mark) return std::nullopt;
  return Slot{*writes, *pid, {*epoch, *revision, *run_mark}};
}

absl::StatusOr<std::string> ReadSlots(int fd, const std::string& path) {
  std::string bytes(kSlotBytes * kSlots, '\0');
  const ssize_t size = pread(fd, bytes.data(), bytes.size(), 0);
  if (size < 0) return ErrnoStatus(errno, "read", path);
  bytes.resize(static_cast<size_t>(size));
  return bytes;
}

std::optional<Slot> NewestSlot(std::string_view bytes) {
  std::optional<Slot> newest;
  for (size_t at = 0; at < bytes.size(); at += kSlotBytes) {
    const std::optional<Slot> slot = Parse(bytes.substr(at, kSlotBytes));
    if (slot && (!newest || newest->writes < slot->writes)) newest = slot;
  }
  return newest;
}

absl::Status HeldBy(int fd, const std::string& path) {
  TP_ASSIGN_OR_RETURN(const std::string bytes, ReadSlots(fd, path));
  const std::optional<Slot> slot = NewestSlot(bytes);
  return FailedPrecondition("{} is held by {}: a deployment has one tpd, stop that one first", path,
                            slot ? fmt::format("the tpd with pid {}", slot->pid) : "another process that is starting");
}

absl::Status SyncFolder(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  TP_ASSIGN_OR_RETURN(const Directory directory, OpenDirectory(folder.empty() ? "." : folder));
  return SyncDirectory(directory);
}

}  // namespace

absl::StatusOr<std::unique_ptr<LockFile>> LockFile::Acquire(const std::string& path) {
  UniqueFd fd(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd.valid()) return ErrnoStatus(errno, "open", path);
  TP_ASSIGN_OR_RETURN(const bool ours, TakeLock(fd.get(), path));
  if (!ours) return HeldBy(fd.get(), path);
  std::unique_ptr<LockFile> lock(new LockFile(path, std::move(fd)));
  TP_RETURN_IF_ERROR(lock->Read());
  // Our pid, for whoever comes second.
  TP_RETURN_IF_ERROR(lock->Write());
  TP_RETURN_IF_ERROR(lock->Sync());
  TP_RETURN_IF_ERROR(SyncFolder(path));
  return lock;
}

LockFile::~LockFile() { Sync().IgnoreError(); }

absl::Status LockFile::Read() {
  TP_ASSIGN_OR_RETURN(const std::string bytes, ReadSlots(fd_.get(), path_));
  const std::optional<Slot> slot = NewestSlot(bytes);
  if (slot) {
    state_ = slot->state;
    writes_ = slot->writes;
    return absl::OkStatus();
  }
  // The second write goes to the front: while that is empty, at most the first was tried, and nothing was
  // promised on it.
  if (bytes.substr(0, kSlotBytes).find_first_not_of('\0') == std::string::npos) return absl::OkStatus();
  return Error(absl::StatusCode::kDataLoss,
               "{} is damaged: it no longer says how far the database had come. If the database is known to be the "
               "newest one, remove the file and start tpd again",
               path_);
}

absl::Status LockFile::Write() {
  ReachFaultPoint(FaultPoint::kBeforeLockWrite);
  ++writes_;
  const std::string slot = Format({writes_, getpid(), state_});
  const auto offset = static_cast<off_t>(kSlotBytes) * (writes_ % kSlots);
  const ssize_t written = pwrite(fd_.get(), slot.data(), slot.size(), offset);
  if (written < 0) return ErrnoStatus(errno, "write", path_);
  if (static_cast<size_t>(written) != slot.size()) {
    return Internal("cannot write {}: {} bytes of {} were taken", path_, written, slot.size());
  }
  ReachFaultPoint(FaultPoint::kAfterLockWrite);
  return absl::OkStatus();
}

absl::Status LockFile::Sync() {
  if (fdatasync(fd_.get()) != 0) return ErrnoStatus(errno, "fsync", path_);
  synced_revision_ = state_.revision;
  return absl::OkStatus();
}

bool LockFile::IsAheadOf(const Meta& meta) const {
  return std::tie(state_.epoch, state_.revision) > std::tie(meta.epoch, meta.revision);
}

absl::Status LockFile::ReserveRuns(int64_t next_run) {
  if (next_run <= state_.run_mark) return absl::OkStatus();
  const int64_t before = std::exchange(state_.run_mark, next_run + kRunBlock);
  absl::Status status = Write();
  if (status.ok()) status = Sync();
  if (!status.ok()) state_.run_mark = before;
  return status;
}

absl::Status LockFile::Record(const Meta& committed) {
  state_.epoch = committed.epoch;
  state_.revision = committed.revision;
  TP_RETURN_IF_ERROR(Write());
  return state_.revision - synced_revision_ < kRevisionsPerSync ? absl::OkStatus() : Sync();
}

absl::Status LockFile::RecordDurably(const Meta& committed) {
  TP_RETURN_IF_ERROR(Record(committed));
  return Sync();
}

}  // namespace tp::store
