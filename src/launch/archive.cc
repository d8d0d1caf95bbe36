#include "launch/archive.h"

#include <archive.h>
#include <archive_entry.h>
#include <sys/stat.h>

#include <cerrno>

#include "base/file.h"
#include "base/status.h"

namespace tp::launch {
namespace {

constexpr size_t kBlockBytes = 128 * 1024;

std::vector<std::string_view> Components(std::string_view path) {
  std::vector<std::string_view> components;
  while (!path.empty()) {
    const size_t slash = path.find('/');
    const std::string_view component = path.substr(0, slash);
    if (!component.empty() && component != ".") components.push_back(component);
    path = slash == std::string_view::npos ? std::string_view() : path.substr(slash + 1);
  }
  return components;
}

absl::StatusOr<std::string> NormalPath(std::string_view name) {
  if (name.empty()) return InvalidArgument("an entry without a name");
  if (name.front() == '/') return InvalidArgument("'{}' is an absolute path", name);
  std::string path;
  for (const std::string_view component : Components(name)) {
    if (component == "..") return InvalidArgument("'{}' leads out of the tree", name);
    if (!path.empty()) path += '/';
    path += component;
  }
  return path;
}

// A target may climb with leading `..` no higher than the root and then only go down. As no entry lies
// beneath a link, the climb passes real directories, and each link it goes through obeys the same rule:
// so no chain of links leaves the tree.
absl::Status CheckSymlink(const ArchiveEntry& entry) {
  if (entry.link_target.empty() || entry.link_target.front() == '/') {
    return InvalidArgument("'{}' is a link to '{}', outside of the tree", entry.path, entry.link_target);
  }
  size_t depth = Components(entry.path).size() - 1;
  bool descending = false;
  for (const std::string_view component : Components(entry.link_target)) {
    if (component != "..") {
      descending = true;
      continue;
    }
    if (descending) {
      return InvalidArgument("'{}' is a link to '{}': '..' may only come first", entry.path, entry.link_target);
    }
    if (depth == 0) {
      return InvalidArgument("'{}' is a link to '{}', outside of the tree", entry.path, entry.link_target);
    }
    --depth;
  }
  return absl::OkStatus();
}

// In the C locale libarchive has names either as bytes or as UTF-8.
std::string_view Either(const char* bytes, const char* utf8) {
  if (bytes != nullptr) return bytes;
  return utf8 != nullptr ? utf8 : "";
}

std::string_view NameOf(archive_entry* raw) {
  return Either(archive_entry_pathname(raw), archive_entry_pathname_utf8(raw));
}
std::string_view SymlinkOf(archive_entry* raw) {
  return Either(archive_entry_symlink(raw), archive_entry_symlink_utf8(raw));
}
std::string_view HardLinkOf(archive_entry* raw) {
  return Either(archive_entry_hardlink(raw), archive_entry_hardlink_utf8(raw));
}

}  // namespace

void ArchiveReader::Free::operator()(archive* handle) const { archive_read_free(handle); }

ArchiveReader::ArchiveReader(std::string path, const SnapshotLimits& limits)
    : path_(std::move(path)), limits_(limits), handle_(archive_read_new()), buffer_(kBlockBytes) {}

absl::StatusOr<ArchiveReader> ArchiveReader::Open(const std::string& path, const SnapshotLimits& limits) {
  ArchiveReader reader(path, limits);
  archive* handle = reader.handle_.get();
  if (handle == nullptr) return Unavailable("out of memory for reading {}", path);
  archive_read_support_format_tar(handle);
  archive_read_support_format_empty(handle);
  struct stat about {};
  if (stat(path.c_str(), &about) != 0) return ErrnoStatus(errno, "open", path);
  if (archive_read_open_filename(handle, path.c_str(), kBlockBytes) != ARCHIVE_OK) return reader.Broken();
  return reader;
}

absl::Status ArchiveReader::Broken() const {
  const int error = archive_errno(handle_.get());
  if (error == EIO || error == ESTALE) return ErrnoStatus(error, "read", path_);
  const char* why = archive_error_string(handle_.get());
  return InvalidArgument("the snapshot is not a readable tar archive: {}", why == nullptr ? "damaged" : why);
}

absl::StatusOr<std::optional<ArchiveEntry>> ArchiveReader::Next() {
  for (;;) {
    archive_entry* raw = nullptr;
    const int result = archive_read_next_header(handle_.get(), &raw);
    if (result == ARCHIVE_EOF) return std::nullopt;
    if (result != ARCHIVE_OK && result != ARCHIVE_WARN) return Broken();
    if (++entries_ > limits_.max_entries) {
      return Error(absl::StatusCode::kResourceExhausted,
                   "the snapshot has more than {} entries: list what need not be copied in .tpignore",
                   limits_.max_entries);
    }
    TP_ASSIGN_OR_RETURN(ArchiveEntry entry, Convert(raw));
    if (entry.path.empty()) continue;  // the tree itself
    TP_RETURN_IF_ERROR(CheckName(entry));
    TP_RETURN_IF_ERROR(Remember(entry));
    return entry;
  }
}

absl::StatusOr<ArchiveEntry> ArchiveReader::Convert(archive_entry* raw) {
  ArchiveEntry entry;
  TP_ASSIGN_OR_RETURN(entry.path, NormalPath(NameOf(raw)));
  entry.mode = archive_entry_mode(raw) & 0777;
  entry.mtime_s = archive_entry_mtime(raw);
  if (const std::string_view target = HardLinkOf(raw); !target.empty()) {
    entry.kind = EntryKind::kHardLink;
    TP_ASSIGN_OR_RETURN(entry.link_target, NormalPath(target));
    return entry;
  }
  switch (archive_entry_filetype(raw)) {
    case AE_IFREG:
      entry.kind = EntryKind::kFile;
      return entry;
    case AE_IFDIR:
      entry.kind = EntryKind::kDirectory;
      return entry;
    case AE_IFLNK:
      entry.kind = EntryKind::kSymlink;
      entry.link_target = SymlinkOf(raw);
      return entry;
    default:
      return InvalidArgument("'{}' is a device, FIFO or socket; a snapshot holds files, directories and links",
                             entry.path);
  }
}

absl::Status ArchiveReader::CheckName(const ArchiveEntry& entry) const {
  if (entry.path.size() > limits_.max_path_bytes) {
    return InvalidArgument("a path of {} bytes is too long: '{}...'", entry.path.size(), entry.path.substr(0, 80));
  }
  if (entry.path.empty()) return InvalidArgument("the tree itself is not a directory");
  switch (entry.kind) {
    case EntryKind::kFile:
    case EntryKind::kDirectory:
      return absl::OkStatus();
    case EntryKind::kSymlink:
      return CheckSymlink(entry);
    case EntryKind::kHardLink: {
      const auto target = seen_.find(entry.link_target);
      if (target != seen_.end() && target->second == EntryKind::kFile) return absl::OkStatus();
      return InvalidArgument("'{}' is a hard link to '{}', which is no earlier file of the archive", entry.path,
                             entry.link_target);
    }
  }
  return absl::OkStatus();
}

absl::Status ArchiveReader::Remember(const ArchiveEntry& entry) {
  for (size_t slash = entry.path.find('/'); slash != std::string::npos; slash = entry.path.find('/', slash + 1)) {
    const auto [parent, added] = seen_.try_emplace(entry.path.substr(0, slash), EntryKind::kDirectory);
    if (!added && parent->second != EntryKind::kDirectory) {
      return InvalidArgument("'{}' lies beneath '{}', which is not a directory", entry.path, parent->first);
    }
  }
  // Another hard link may point to this one.
  const EntryKind kind = entry.kind == EntryKind::kHardLink ? EntryKind::kFile : entry.kind;
  const auto [known, added] = seen_.try_emplace(entry.path, kind);
  const bool same_directory = kind == EntryKind::kDirectory && known->second == EntryKind::kDirectory;
  if (!added && !same_directory) return InvalidArgument("'{}' is in the archive twice", entry.path);
  return absl::OkStatus();
}

absl::StatusOr<std::string_view> ArchiveReader::ReadData() {
  const la_ssize_t got = archive_read_data(handle_.get(), buffer_.data(), buffer_.size());
  if (got < 0) return Broken();
  bytes_ += got;
  if (bytes_ > limits_.max_bytes) {
    return Error(absl::StatusCode::kResourceExhausted,
                 "the snapshot's files exceed {} bytes: list what need not be copied in .tpignore", limits_.max_bytes);
  }
  return std::string_view(buffer_.data(), static_cast<size_t>(got));
}

absl::StatusOr<SnapshotContents> CheckSnapshot(const std::string& archive_path, const SnapshotLimits& limits) {
  TP_ASSIGN_OR_RETURN(ArchiveReader reader, ArchiveReader::Open(archive_path, limits));
  SnapshotContents contents;
  for (;;) {
    TP_ASSIGN_OR_RETURN(const std::optional<ArchiveEntry> entry, reader.Next());
    if (!entry) return contents;
    if (entry->kind != EntryKind::kFile) continue;
    ++contents.files;
    for (;;) {
      TP_ASSIGN_OR_RETURN(const std::string_view block, reader.ReadData());
      if (block.empty()) break;
      contents.bytes += static_cast<int64_t>(block.size());
    }
  }
}

}  // namespace tp::launch
