#include "cli/stat_cache.h"

#include <charconv>
#include <cstdlib>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include "base/sha256.h"
#include "base/status.h"

namespace tp::cli {
namespace {

constexpr std::string_view kHeader = "tp-stat-cache 1\n";
constexpr size_t kDigestDigits = 64;
constexpr size_t kMaxCacheBytes = size_t{256} << 20;
constexpr mode_t kMode = 0600;
constexpr int64_t kNsPerSecond = 1'000'000'000;
// File systems stamp with a clock of some milliseconds, or whole seconds, two at worst.
constexpr int64_t kFineClockNs = 20'000'000;
constexpr int64_t kCoarseClockNs = 2 * kNsPerSecond;

int64_t Nanoseconds(const timespec& time) { return int64_t{time.tv_sec} * kNsPerSecond + time.tv_nsec; }

std::string HexDigest(std::string_view text) {
  Sha256 digest;
  digest.Update(text);
  return digest.HexDigest();
}

// Empty where the environment names none.
std::string CacheHome() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && *cache == '/') return cache;
  const char* home = std::getenv("HOME");
  return home != nullptr && *home == '/' ? fmt::format("{}/.cache", home) : "";
}

template <typename Integer>
bool TakeInteger(std::string_view* rest, Integer* number) {
  const auto [end, error] = std::from_chars(rest->data(), rest->data() + rest->size(), *number);
  if (error != std::errc() || end == rest->data() + rest->size() || *end != ' ') return false;
  rest->remove_prefix(static_cast<size_t>(end - rest->data()) + 1);
  return true;
}

// By the clock that stamps files, which a file made now shows.
std::optional<int64_t> FileClock(const Directory& folder) {
  const std::string name = ".clock." + RandomName();
  const UniqueFd fd(::openat(folder.fd.get(), name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kMode));
  if (!fd.valid()) return std::nullopt;
  ::unlinkat(folder.fd.get(), name.c_str(), 0);
  struct stat about {};
  if (::fstat(fd.get(), &about) != 0) return std::nullopt;
  return Nanoseconds(about.st_mtim);
}

}  // namespace

FileStamp StampOf(const struct stat& about) {
  return {.device = about.st_dev,
          .inode = about.st_ino,
          .bytes = about.st_size,
          .mtime_ns = Nanoseconds(about.st_mtim),
          .ctime_ns = Nanoseconds(about.st_ctim)};
}

StatCache StatCache::Open(const std::string& directory) {
  StatCache cache;
  if (cache.Begin(directory)) {
    cache.Load();
  } else {
    cache.folder_ = Directory();
  }
  return cache;
}

bool StatCache::Begin(const std::string& directory) {
  const std::string home = CacheHome();
  if (home.empty()) return false;
  ::mkdir(home.c_str(), 0700);  // most often there
  auto folder = MakeDirectoriesBeneath(home, "tp", 0700);
  if (!folder.ok()) return false;
  folder_ = *std::move(folder);
  name_ = "stat-" + HexDigest(directory).substr(0, 32);
  const auto now_ns = FileClock(folder_);
  opened_ns_ = now_ns.value_or(0);
  next_ = kHeader;
  return now_ns.has_value();
}

void StatCache::Load() {
  const auto text = ReadSmallFile(folder_, name_, kMaxCacheBytes);
  if (!text.ok() || !*text || (*text)->size() < kHeader.size() + kDigestDigits) return;
  std::string_view rest = **text;
  const std::string_view digest = rest.substr(rest.size() - kDigestDigits);
  rest.remove_suffix(kDigestDigits);
  if (!rest.starts_with(kHeader) || HexDigest(rest) != digest) return;
  rest.remove_prefix(kHeader.size());
  while (!rest.empty()) {
    Known known;
    FileStamp& stamp = known.stamp;
    const bool whole = TakeInteger(&rest, &stamp.device) && TakeInteger(&rest, &stamp.inode) &&
                       TakeInteger(&rest, &stamp.bytes) && TakeInteger(&rest, &stamp.mtime_ns) &&
                       TakeInteger(&rest, &stamp.ctime_ns);
    const size_t end = rest.find('\0');
    if (!whole || end == std::string_view::npos || end <= kDigestDigits) return known_.clear();
    known.sha256 = rest.substr(0, kDigestDigits);
    known_.emplace(rest.substr(kDigestDigits, end - kDigestDigits), std::move(known));
    rest.remove_prefix(end + 1);
  }
}

std::optional<std::string> StatCache::Find(std::string_view path, const FileStamp& stamp) const {
  const auto found = known_.find(path);
  if (found == known_.end() || found->second.stamp != stamp) return std::nullopt;
  return found->second.sha256;
}

// A file whose time is that of the moment may be changed again within the same tick of the clock.
bool StatCache::IsSettled(const FileStamp& stamp) const {
  for (const int64_t time : {stamp.mtime_ns, stamp.ctime_ns}) {
    const int64_t tick_ns = time % kNsPerSecond == 0 ? kCoarseClockNs : kFineClockNs;
    if (time > opened_ns_ - tick_ns) return false;
  }
  return true;
}

void StatCache::Remember(const std::string& path, const FileStamp& stamp, const std::string& sha256) {
  if (!folder_.fd.valid() || !IsSettled(stamp)) return;
  next_ +=
      fmt::format("{} {} {} {} {} {}", stamp.device, stamp.inode, stamp.bytes, stamp.mtime_ns, stamp.ctime_ns, sha256);
  next_ += path;
  next_ += '\0';
}

void StatCache::Save() {
  if (!folder_.fd.valid()) return;
  ReplaceFile(folder_, name_, next_ + HexDigest(next_), kMode, Sync::kNone).IgnoreError();
}

}  // namespace tp::cli
