#include "api/rank_log.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <iterator>
#include <limits>
#include <utility>

#include "api/job_files.h"
#include "base/status.h"

namespace tp::api {
namespace {

constexpr size_t kOffsetDigits = 20;
constexpr int64_t kTailBlockBytes = 64 * 1024;
// The log may be rotated while it is looked at; more often than this in one look, something is wrong.
constexpr int kMaxLooks = 8;

std::optional<int64_t> ParseOffset(std::string_view digits) {
  int64_t offset = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), offset);
  if (digits.size() != kOffsetDigits || error != std::errc{} || end != digits.data() + digits.size() || offset < 0) {
    return std::nullopt;
  }
  return offset;
}

}  // namespace

RankLog::RankLog(std::shared_ptr<const Directory> directory, std::string name)
    : directory_(std::move(directory)), name_(std::move(name)) {}

absl::StatusOr<LogBytes> RankLog::Read(int64_t offset, size_t max_bytes) {
  for (int look = 0; look < kMaxLooks; ++look) {
    if (!file_ || offset < file_->begin) {
      TP_ASSIGN_OR_RETURN(file_, Locate(offset));
      if (!file_) return LogBytes{.offset = offset, .data = ""};
    }
    offset = std::max(offset, file_->begin);
    // Whether the file may still grow is asked before it is read: the other way round, bytes written in
    // between would be passed over.
    const bool complete = IsComplete(*file_);
    TP_ASSIGN_OR_RETURN(std::string data, ReadFile(*file_, offset, max_bytes));
    if (!data.empty() || !complete) return LogBytes{.offset = offset, .data = std::move(data)};
    file_.reset();
  }
  return LogBytes{.offset = offset, .data = ""};
}

absl::StatusOr<int64_t> RankLog::TailOffset(int64_t lines) {
  TP_ASSIGN_OR_RETURN(const int64_t end, End());
  int64_t block_end = end;
  int64_t to_find = lines;
  while (block_end > 0 && to_find > 0) {
    const int64_t begin = std::max<int64_t>(0, block_end - kTailBlockBytes);
    TP_ASSIGN_OR_RETURN(const LogBytes block, ReadBlock(begin, static_cast<size_t>(block_end - begin)));
    for (size_t i = block.data.size(); i-- > 0;) {
      const int64_t position = block.offset + static_cast<int64_t>(i);
      // The newline at the very end ends the last line and begins none.
      if (block.data[i] == '\n' && position != end - 1 && --to_find == 0) return position + 1;
    }
    if (block.offset > begin) return block.offset;  // older segments are gone
    block_end = begin;
  }
  return lines == 0 ? end : block_end;
}

absl::StatusOr<std::vector<RankLog::Segment>> RankLog::ListSegments() const {
  TP_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListNames(*directory_));
  const std::string prefix = name_ + ".";
  std::vector<Segment> segments;
  for (const std::string& name : names) {
    if (name.compare(0, prefix.size(), prefix) != 0) continue;
    if (const auto begin = ParseOffset(std::string_view(name).substr(prefix.size()))) {
      segments.push_back({.begin = *begin, .name = name});
    }
  }
  std::sort(segments.begin(), segments.end(), [](const Segment& a, const Segment& b) { return a.begin < b.begin; });
  return segments;
}

absl::StatusOr<std::optional<RankLog::OpenFile>> RankLog::Locate(int64_t offset) const {
  for (int look = 0; look < kMaxLooks; ++look) {
    TP_ASSIGN_OR_RETURN(const std::vector<Segment> segments, ListSegments());
    auto file = LocateOnce(segments, offset);
    if (!file.ok() && !absl::IsNotFound(file.status())) return file;
    TP_ASSIGN_OR_RETURN(const std::vector<Segment> after, ListSegments());
    if (after == segments) return file.ok() ? std::move(file) : std::optional<OpenFile>();
  }
  return Unavailable("{} is rotated faster than it can be read: try again", directory_->At(name_));
}

absl::StatusOr<std::optional<RankLog::OpenFile>> RankLog::LocateOnce(const std::vector<Segment>& segments,
                                                                     int64_t offset) const {
  OpenFile file{.fd = UniqueFd(), .name = name_, .begin = 0};
  if (!segments.empty()) {
    // The last segment that begins at or before `offset`; before them all: the oldest.
    auto after = std::upper_bound(segments.begin(), segments.end(), offset,
                                  [](int64_t at, const Segment& segment) { return at < segment.begin; });
    const Segment& segment = after == segments.begin() ? *after : *std::prev(after);
    file.name = segment.name;
    file.begin = segment.begin;
    TP_ASSIGN_OR_RETURN(file.fd, OpenRegularFile(*directory_, file.name));
    TP_ASSIGN_OR_RETURN(const int64_t bytes, SizeOf(file.fd.get(), file.name));
    const bool newest = segment == segments.back();
    if (!newest || offset < file.begin + bytes) return std::optional<OpenFile>(std::move(file));
    file.name = name_;
    file.begin += bytes;
  }
  TP_ASSIGN_OR_RETURN(file.fd, OpenRegularFile(*directory_, file.name));
  return std::optional<OpenFile>(std::move(file));
}

// A segment does not grow; neither does what was the current file once its name is another's.
bool RankLog::IsComplete(const OpenFile& file) const {
  if (file.name != name_) return true;
  struct stat ours {};
  struct stat named {};
  if (fstat(file.fd.get(), &ours) != 0) return false;
  if (fstatat(directory_->fd.get(), name_.c_str(), &named, AT_SYMLINK_NOFOLLOW) != 0) return errno == ENOENT;
  return ours.st_ino != named.st_ino || ours.st_dev != named.st_dev;
}

absl::StatusOr<std::string> RankLog::ReadFile(const OpenFile& file, int64_t offset, size_t max_bytes) const {
  return ReadAt(file.fd.get(), offset - file.begin, max_bytes, directory_->At(file.name));
}

// As many of `bytes` as there are, across segments.
absl::StatusOr<LogBytes> RankLog::ReadBlock(int64_t offset, size_t bytes) {
  TP_ASSIGN_OR_RETURN(LogBytes block, Read(offset, bytes));
  const int64_t end = offset + static_cast<int64_t>(bytes);
  for (;;) {
    const int64_t next = block.offset + static_cast<int64_t>(block.data.size());
    if (next >= end) break;
    TP_ASSIGN_OR_RETURN(const LogBytes more, Read(next, static_cast<size_t>(end - next)));
    if (more.data.empty() || more.offset != next) break;
    block.data += more.data;
  }
  // Where the oldest segments are gone, more was read than was asked for.
  block.data.resize(
      static_cast<size_t>(std::clamp<int64_t>(end - block.offset, 0, static_cast<int64_t>(block.data.size()))));
  return block;
}

absl::StatusOr<int64_t> RankLog::End() const {
  TP_ASSIGN_OR_RETURN(const std::optional<OpenFile> file, Locate(std::numeric_limits<int64_t>::max()));
  if (!file) {
    TP_ASSIGN_OR_RETURN(const std::vector<Segment> segments, ListSegments());
    if (segments.empty()) return 0;
    TP_ASSIGN_OR_RETURN(const UniqueFd fd, OpenRegularFile(*directory_, segments.back().name));
    TP_ASSIGN_OR_RETURN(const int64_t bytes, SizeOf(fd.get(), segments.back().name));
    return segments.back().begin + bytes;
  }
  TP_ASSIGN_OR_RETURN(const int64_t bytes, SizeOf(file->fd.get(), file->name));
  return file->begin + bytes;
}

}  // namespace tp::api
