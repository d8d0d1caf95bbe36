#include "snapshot/manifest.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <utility>

#include "base/human_bytes.h"
#include "base/printable.h"
#include "base/sha256.h"
#include "base/status.h"
#include "snapshot/link_check.h"
#include "snapshot/path.h"

namespace tp::snapshot {
namespace {

constexpr std::string_view kHeader = "tp-manifest 1\n";
constexpr size_t kSha256Digits = 64;
constexpr size_t kLargestNamed = 5;

bool ByPath(const Entry& a, const Entry& b) { return a.path < b.path; }

// --- Checks ---------------------------------------------------------------------------------------

absl::Status CheckPath(const std::string& path) {
  if (path.empty()) return InvalidArgument("an entry of the snapshot has no path");
  if (path.front() == '/') return InvalidArgument("{} is an absolute path", Quoted(path));
  if (path.size() > kMaxPathBytes) {
    return InvalidArgument("a path of {} bytes is too long, the longest has {}: {}", path.size(), kMaxPathBytes,
                           Quoted(path));
  }
  if (path.find('\0') != std::string::npos) return InvalidArgument("{} holds a NUL byte", Quoted(path));
  std::string_view rest = path;
  for (bool last = false; !last;) {
    last = rest.find('/') == std::string_view::npos;
    const std::string_view part = TakePart(&rest);
    if (part.empty() || part == "." || part == "..") {
      return InvalidArgument("{} has an empty part, '.' or '..': a path is made of names only", Quoted(path));
    }
    if (part.size() > kMaxNameBytes) {
      return InvalidArgument("a name of {} bytes is too long, the longest has {}: {}", part.size(), kMaxNameBytes,
                             Quoted(part));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckFile(const Entry& entry) {
  if (!IsSha256(entry.sha256)) return InvalidArgument("{} has no SHA-256 of 64 hex digits", Quoted(entry.path));
  if (entry.bytes < 0) return InvalidArgument("{} has {} bytes", Quoted(entry.path), entry.bytes);
  return absl::OkStatus();
}

absl::Status CheckEntry(const Entry& entry) {
  TP_RETURN_IF_ERROR(CheckPath(entry.path));
  switch (entry.kind) {
    case EntryKind::kFile:
      return CheckFile(entry);
    case EntryKind::kDirectory:
    case EntryKind::kSymlink:
      return absl::OkStatus();
  }
  return InvalidArgument("{} is neither file, directory nor link", Quoted(entry.path));
}

// `entries` are sorted and each is well-formed.
absl::Status CheckTree(const std::vector<Entry>& entries) {
  EntryMap by_path;
  by_path.reserve(entries.size());
  for (const Entry& entry : entries) {
    if (!by_path.emplace(entry.path, &entry).second) return InvalidArgument("{} is there twice", Quoted(entry.path));
    const std::string_view parent = ParentOf(entry.path);
    if (parent.empty()) continue;
    const auto found = by_path.find(parent);  // sorts before what lies beneath it
    if (found == by_path.end()) {
      return InvalidArgument("{} lies in a directory that the snapshot does not list", Quoted(entry.path));
    }
    if (found->second->kind != EntryKind::kDirectory) {
      return InvalidArgument("{} lies beneath {}, which is no directory", Quoted(entry.path), Quoted(parent));
    }
  }
  for (const Entry& entry : entries) {
    if (entry.kind == EntryKind::kSymlink) TP_RETURN_IF_ERROR(CheckLink(entry, by_path));
  }
  return absl::OkStatus();
}

// --- Text -----------------------------------------------------------------------------------------

void AppendEntry(const Entry& entry, std::string* text) {
  switch (entry.kind) {
    case EntryKind::kFile:
      *text += fmt::format("{} {} {} ", entry.executable ? 'x' : 'f', entry.sha256, entry.bytes);
      *text += entry.path;
      break;
    case EntryKind::kDirectory:
      *text += "d ";
      *text += entry.path;
      break;
    case EntryKind::kSymlink:
      *text += "l ";
      *text += entry.path;
      *text += '\0';
      *text += entry.link_target;
      break;
  }
  *text += '\0';
}

std::optional<std::string_view> TakeUntil(char end, std::string_view* rest) {
  const size_t at = rest->find(end);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view taken = rest->substr(0, at);
  rest->remove_prefix(at + 1);
  return taken;
}

bool ReadFileFields(std::string_view* rest, Entry* entry) {
  const auto sha256 = TakeUntil(' ', rest);
  const auto bytes = TakeUntil(' ', rest);
  if (!sha256 || !bytes) return false;
  entry->sha256 = *sha256;
  return std::from_chars(bytes->data(), bytes->data() + bytes->size(), entry->bytes).ec == std::errc();
}

std::optional<Entry> ReadEntry(std::string_view* rest) {
  const auto kind = TakeUntil(' ', rest);
  if (!kind || kind->size() != 1) return std::nullopt;
  Entry entry;
  switch (kind->front()) {
    case 'f':
    case 'x':
      entry.executable = kind->front() == 'x';
      if (!ReadFileFields(rest, &entry)) return std::nullopt;
      break;
    case 'd':
      entry.kind = EntryKind::kDirectory;
      break;
    case 'l':
      entry.kind = EntryKind::kSymlink;
      break;
    default:
      return std::nullopt;
  }
  const auto path = TakeUntil('\0', rest);
  if (!path) return std::nullopt;
  entry.path = *path;
  if (entry.kind != EntryKind::kSymlink) return entry;
  const auto target = TakeUntil('\0', rest);
  if (!target) return std::nullopt;
  entry.link_target = *target;
  return entry;
}

absl::Status NoManifest(std::string_view why) {
  return Error(absl::StatusCode::kDataLoss, "a snapshot's manifest is damaged ({}): submit again", why);
}

// --- Size -----------------------------------------------------------------------------------------

std::string LargestFiles(const std::vector<Entry>& entries) {
  std::vector<const Entry*> files;
  for (const Entry& entry : entries) {
    if (entry.kind == EntryKind::kFile) files.push_back(&entry);
  }
  const size_t named = std::min(kLargestNamed, files.size());
  std::partial_sort(files.begin(), files.begin() + static_cast<std::ptrdiff_t>(named), files.end(),
                    [](const Entry* a, const Entry* b) { return a->bytes > b->bytes; });
  std::string list;
  for (size_t i = 0; i < named; ++i) {
    list += fmt::format("{}{} ({})", i == 0 ? "" : ", ", Quoted(files[i]->path), HumanBytes(files[i]->bytes));
  }
  return list;
}

int64_t SumOfBytes(const std::vector<Entry>& entries) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  int64_t sum = 0;
  for (const Entry& entry : entries) sum = entry.bytes > kMost - sum ? kMost : sum + entry.bytes;
  return sum;
}

// At most.
size_t TextBytes(const std::vector<Entry>& entries) {
  constexpr size_t kRestOfEntry = kSha256Digits + 32;
  size_t sum = kHeader.size();
  for (const Entry& entry : entries) sum += entry.path.size() + entry.link_target.size() + kRestOfEntry;
  return sum;
}

}  // namespace

bool IsSha256(std::string_view text) {
  return text.size() == kSha256Digits && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

absl::Status CheckCount(size_t entries, const Limits& limits) {
  if (entries <= static_cast<size_t>(limits.max_entries)) return absl::OkStatus();
  return InvalidArgument(
      "the directory holds more than the {} files, directories and links of a snapshot: list what the job does not "
      "need in .tpignore",
      limits.max_entries);
}

absl::Status CheckSize(const std::vector<Entry>& entries, const Limits& limits) {
  TP_RETURN_IF_ERROR(CheckCount(entries.size(), limits));
  if (TextBytes(entries) > kMaxManifestBytes) {
    return InvalidArgument("the paths and links of the directory have more than {} together: shorten or leave them out",
                           HumanBytes(kMaxManifestBytes));
  }
  const int64_t bytes = SumOfBytes(entries);
  if (bytes <= limits.max_bytes) return absl::OkStatus();
  return InvalidArgument(
      "the directory holds {}, a snapshot at most {}; the largest files: {}. List what the job does not need in "
      ".tpignore, or submit from a directory of the code alone (--dir)",
      HumanBytes(bytes), HumanBytes(limits.max_bytes), LargestFiles(entries));
}

Manifest::Manifest(std::vector<Entry> entries)
    : entries_(std::move(entries)), text_(kHeader), bytes_(SumOfBytes(entries_)) {
  for (const Entry& entry : entries_) {
    AppendEntry(entry, &text_);
    if (entry.kind == EntryKind::kFile) ++files_;
  }
  Sha256 digest;
  digest.Update(text_);
  id_ = digest.HexDigest();
}

absl::StatusOr<Manifest> Manifest::Make(std::vector<Entry> entries) {
  for (const Entry& entry : entries) TP_RETURN_IF_ERROR(CheckEntry(entry));
  std::sort(entries.begin(), entries.end(), ByPath);
  TP_RETURN_IF_ERROR(CheckTree(entries));
  return Manifest(std::move(entries));
}

absl::StatusOr<Manifest> Manifest::Parse(std::string_view text) {
  if (!text.starts_with(kHeader)) return NoManifest("not of a version that this tpd reads");
  std::string_view rest = text.substr(kHeader.size());
  std::vector<Entry> entries;
  while (!rest.empty()) {
    std::optional<Entry> entry = ReadEntry(&rest);
    if (!entry) return NoManifest("an entry is cut short");
    entries.push_back(*std::move(entry));
  }
  absl::StatusOr<Manifest> manifest = Make(std::move(entries));
  if (!manifest.ok()) return NoManifest(Message(manifest.status()));
  if (manifest->text() != text) return NoManifest("not canonical");
  return manifest;
}

}  // namespace tp::snapshot
