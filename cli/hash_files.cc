#include "cli/hash_files.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/printable.h"
#include "base/sha256.h"
#include "base/status.h"
#include "cli/parallel.h"

namespace tp::cli {
namespace {

constexpr size_t kReadBytes = 256 * 1024;
constexpr size_t kMaxWorkers = 8;

class Hasher {
 public:
  explicit Hasher(FileTree& tree) : tree_(tree) {
    for (size_t i = 0; i < tree_.entries.size(); ++i) {
      const snapshot::Entry& entry = tree_.entries[i];
      if (entry.kind != snapshot::EntryKind::kFile || !entry.sha256.empty()) continue;
      wanted_.push_back(i);
      wanted_bytes_ += entry.bytes;
    }
  }

  absl::Status Run(Progress& progress) {
    const size_t workers = std::min({wanted_.size(), kMaxWorkers, size_t{std::thread::hardware_concurrency()} + 1});
    return RunInParallel(
        static_cast<int>(workers), [this](int /*worker*/) { return Work(); },
        [&] { progress.Update("reading", read_bytes_, wanted_bytes_); });
  }

  HashCost cost() const {
    return {.files_read = static_cast<int64_t>(wanted_.size()), .bytes_read = read_bytes_.load()};
  }

 private:
  absl::Status Work() {
    std::vector<char> buffer(kReadBytes);
    for (size_t i = next_++; i < wanted_.size(); i = next_++) {
      absl::Status status = HashFile(wanted_[i], buffer);
      if (status.ok()) continue;
      next_ = wanted_.size();  // the others need not go on
      return status;
    }
    return absl::OkStatus();
  }

  absl::Status HashFile(size_t index, std::vector<char>& buffer) {
    snapshot::Entry& entry = tree_.entries[index];
    const UniqueFd fd(::openat(tree_.root.get(), entry.path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
    if (!fd.valid()) return ReadError(entry);
    Sha256 digest;
    for (;;) {
      const ssize_t got = ::read(fd.get(), buffer.data(), buffer.size());
      if (got < 0) return ReadError(entry);
      if (got == 0) break;
      digest.Update({buffer.data(), static_cast<size_t>(got)});
      read_bytes_ += got;
    }
    struct stat about {};
    if (::fstat(fd.get(), &about) != 0) return ReadError(entry);
    if (StampOf(about) != tree_.stamps[index]) {
      return InvalidArgument("{} changed while it was read; submit again", Quoted(entry.path));
    }
    entry.sha256 = digest.HexDigest();
    return absl::OkStatus();
  }

  static absl::Status ReadError(const snapshot::Entry& entry) {
    return InvalidArgument("{}: {}; a snapshot needs every file to be readable, or left out by .tpignore",
                           Quoted(entry.path), std::strerror(errno));
  }

  FileTree& tree_;
  std::vector<size_t> wanted_;
  int64_t wanted_bytes_ = 0;
  std::atomic<size_t> next_ = 0;
  std::atomic<int64_t> read_bytes_ = 0;
};

}  // namespace

int64_t RecallDigests(const StatCache& cache, FileTree& tree) {
  int64_t unknown_bytes = 0;
  for (size_t i = 0; i < tree.entries.size(); ++i) {
    snapshot::Entry& entry = tree.entries[i];
    if (entry.kind != snapshot::EntryKind::kFile) continue;
    if (auto sha256 = cache.Find(entry.path, tree.stamps[i])) {
      entry.sha256 = *std::move(sha256);
    } else {
      unknown_bytes += entry.bytes;
    }
  }
  return unknown_bytes;
}

void RememberDigests(const FileTree& tree, StatCache& cache) {
  for (size_t i = 0; i < tree.entries.size(); ++i) {
    const snapshot::Entry& entry = tree.entries[i];
    if (entry.kind == snapshot::EntryKind::kFile) cache.Remember(entry.path, tree.stamps[i], entry.sha256);
  }
  cache.Save();
}

absl::StatusOr<HashCost> HashFiles(FileTree& tree, Progress& progress) {
  Hasher hasher(tree);
  TP_RETURN_IF_ERROR(hasher.Run(progress));
  return hasher.cost();
}

}  // namespace tp::cli
