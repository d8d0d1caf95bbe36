#include "backends/node/copied/log_mirror.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <memory>
#include <optional>

#include <fmt/format.h>

#include "base/status.h"

namespace tp::node {
namespace {

constexpr size_t kSegmentDigits = 20;
constexpr mode_t kMirrorMode = 0660;

std::optional<int64_t> SegmentBegin(std::string_view name, std::string_view log) {
  if (!name.starts_with(log) || name.size() != log.size() + 1 + kSegmentDigits || name[log.size()] != '.') {
    return std::nullopt;
  }
  const std::string_view digits = name.substr(log.size() + 1);
  int64_t begin = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), begin);
  const bool whole = error == std::errc() && end == digits.data() + digits.size() && begin >= 0;
  return whole ? std::optional(begin) : std::nullopt;
}

absl::StatusOr<int64_t> BytesOf(const Directory& directory, const std::string& name) {
  struct stat about {};
  if (fstatat(directory.fd.get(), name.c_str(), &about, AT_SYMLINK_NOFOLLOW) == 0) return about.st_size;
  if (errno == ENOENT) return 0;
  return ErrnoStatus(errno, "look at", directory.At(name));
}

absl::Status AppendTo(const Directory& directory, const std::string& name, std::string_view bytes) {
  const int flags = O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW;
  const UniqueFd fd(openat(directory.fd.get(), name.c_str(), flags, kMirrorMode));
  if (!fd.valid()) return ErrnoStatus(errno, "append to", directory.At(name));
  return WriteAll(fd.get(), bytes, directory.At(name));
}

}  // namespace

std::string LogMirror::NameOf(const Part& part) const { return fmt::format("{}.{:020}", name_, part.begin); }

absl::Status LogMirror::Load(const Directory& directory) {
  if (loaded_) return absl::OkStatus();
  UniqueFd copy(openat(directory.fd.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(fdopendir(copy.get()), closedir);
  if (!stream) return ErrnoStatus(errno, "list", directory.path);
  copy.release();
  segments_.clear();
  while (const dirent* entry = readdir(stream.get())) {
    const std::optional<int64_t> begin = SegmentBegin(entry->d_name, name_);
    if (!begin) continue;
    TP_ASSIGN_OR_RETURN(const int64_t bytes, BytesOf(directory, entry->d_name));
    segments_.push_back({*begin, bytes});
  }
  std::sort(segments_.begin(), segments_.end(), [](const Part& a, const Part& b) { return a.begin < b.begin; });
  TP_ASSIGN_OR_RETURN(current_.bytes, BytesOf(directory, name_));
  current_.begin = segments_.empty() ? 0 : segments_.back().begin + segments_.back().bytes;
  loaded_ = true;
  return absl::OkStatus();
}

absl::StatusOr<int64_t> LogMirror::End(const Directory& directory) {
  TP_RETURN_IF_ERROR(Load(directory));
  return current_.begin + current_.bytes;
}

// Where bytes in between are lost, an empty segment says where the current file begins.
absl::Status LogMirror::BeginAt(const Directory& directory, int64_t begin) {
  const int fd = directory.fd.get();
  if (current_.bytes > 0) {
    if (renameat(fd, name_.c_str(), fd, NameOf(current_).c_str()) != 0) {
      return ErrnoStatus(errno, "rename", directory.At(name_));
    }
    segments_.push_back(current_);
  }
  if (current_.begin + current_.bytes < begin) {
    const Part none{begin, 0};
    TP_RETURN_IF_ERROR(AppendTo(directory, NameOf(none), ""));
    segments_.push_back(none);
  }
  current_ = {begin, 0};
  return absl::OkStatus();
}

absl::Status LogMirror::Append(const Directory& directory, int64_t begin, int64_t offset, std::string_view bytes) {
  TP_RETURN_IF_ERROR(Load(directory));
  const int64_t end = current_.begin + current_.bytes;
  if (begin > current_.begin && begin >= end && offset == begin) {
    TP_RETURN_IF_ERROR(BeginAt(directory, begin));
  } else if (begin != current_.begin || offset != end) {
    return absl::OkStatus();
  }
  const absl::Status written = AppendTo(directory, name_, bytes);
  if (!written.ok()) {
    loaded_ = false;  // part of it may be there
    return written;
  }
  current_.bytes += static_cast<int64_t>(bytes.size());
  return Trim(directory);
}

absl::Status LogMirror::Trim(const Directory& directory) {
  int64_t sum = current_.bytes;
  for (const Part& segment : segments_) sum += segment.bytes;
  while (sum > max_bytes_ && !segments_.empty()) {
    // The newest one says where the current file begins.
    if (segments_.size() == 1) break;
    if (unlinkat(directory.fd.get(), NameOf(segments_.front()).c_str(), 0) != 0 && errno != ENOENT) {
      return ErrnoStatus(errno, "remove", directory.At(NameOf(segments_.front())));
    }
    sum -= segments_.front().bytes;
    segments_.erase(segments_.begin());
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> TailMirror::End(const Directory& directory) {
  if (end_ < 0) {
    TP_ASSIGN_OR_RETURN(end_, BytesOf(directory, name_));
  }
  return end_;
}

absl::Status TailMirror::Append(const Directory& directory, int64_t offset, std::string_view bytes) {
  TP_ASSIGN_OR_RETURN(const int64_t end, End(directory));
  const auto added = static_cast<int64_t>(bytes.size());
  if (offset + added > max_bytes_) return absl::OkStatus();
  end_ = -1;  // until it is known to be written
  if (offset == 0 && end > 0) {
    TP_RETURN_IF_ERROR(ReplaceFile(directory, name_, bytes, kMirrorMode, Sync::kNone));
    end_ = added;
    return absl::OkStatus();
  }
  if (offset == end) TP_RETURN_IF_ERROR(AppendTo(directory, name_, bytes));
  end_ = offset == end ? end + added : end;
  return absl::OkStatus();
}

}  // namespace tp::node
