#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "base/file.h"
#include "base/status.h"
#include "launch/archive.h"

namespace tp::launch {
namespace {

// Writes entries beneath a directory. Every step down refuses symbolic links, whatever the archive said.
class TreeWriter {
 public:
  explicit TreeWriter(const std::string& root) : root_(root) {}

  absl::Status Write(ArchiveReader& reader, const ArchiveEntry& entry) {
    switch (entry.kind) {
      case EntryKind::kFile:
        return WriteFile(reader, entry);
      case EntryKind::kDirectory:
        return WriteDirectory(entry);
      case EntryKind::kSymlink:
        return WriteSymlink(entry);
      case EntryKind::kHardLink:
        return WriteHardLink(entry);
    }
    return absl::OkStatus();
  }

 private:
  struct Place {
    const Directory* parent;
    std::string name;
  };

  // The directory that holds `path`. Consecutive entries mostly share it.
  absl::StatusOr<Place> Locate(const std::string& path) {
    const size_t slash = path.rfind('/');
    const std::string parent = slash == std::string::npos ? "" : path.substr(0, slash);
    if (!parent_.fd.valid() || parent != parent_path_) {
      TP_ASSIGN_OR_RETURN(parent_, MakeDirectoriesBeneath(root_, parent, 0755));
      parent_path_ = parent;
    }
    return Place{&parent_, slash == std::string::npos ? path : path.substr(slash + 1)};
  }

  absl::Status WriteFile(ArchiveReader& reader, const ArchiveEntry& entry) {
    TP_ASSIGN_OR_RETURN(const Place place, Locate(entry.path));
    const std::string path = place.parent->At(place.name);
    UniqueFd fd(
        openat(place.parent->fd.get(), place.name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!fd.valid()) return ErrnoStatus(errno, "create", path);
    for (;;) {
      TP_ASSIGN_OR_RETURN(const std::string_view block, reader.ReadData());
      if (block.empty()) break;
      TP_RETURN_IF_ERROR(WriteAll(fd.get(), block, path));
    }
    const std::array<timespec, 2> times = {timespec{.tv_sec = 0, .tv_nsec = UTIME_OMIT},
                                           timespec{.tv_sec = entry.mtime_s, .tv_nsec = 0}};
    if (fchmod(fd.get(), entry.mode | 0600) != 0 || futimens(fd.get(), times.data()) != 0) {
      return ErrnoStatus(errno, "set mode and time of", path);
    }
    return absl::OkStatus();
  }

  absl::Status WriteDirectory(const ArchiveEntry& entry) {
    TP_ASSIGN_OR_RETURN(const Directory directory, MakeDirectoriesBeneath(root_, entry.path, 0755));
    return fchmod(directory.fd.get(), entry.mode | 0700) == 0 ? absl::OkStatus()
                                                              : ErrnoStatus(errno, "set the mode of", directory.path);
  }

  absl::Status WriteSymlink(const ArchiveEntry& entry) {
    TP_ASSIGN_OR_RETURN(const Place place, Locate(entry.path));
    return symlinkat(entry.link_target.c_str(), place.parent->fd.get(), place.name.c_str()) == 0
               ? absl::OkStatus()
               : ErrnoStatus(errno, "link", place.parent->At(place.name));
  }

  absl::Status WriteHardLink(const ArchiveEntry& entry) {
    const size_t slash = entry.link_target.rfind('/');
    const std::string source_parent = slash == std::string::npos ? "" : entry.link_target.substr(0, slash);
    const std::string source = slash == std::string::npos ? entry.link_target : entry.link_target.substr(slash + 1);
    TP_ASSIGN_OR_RETURN(const Directory from, MakeDirectoriesBeneath(root_, source_parent, 0755));
    TP_ASSIGN_OR_RETURN(const Place place, Locate(entry.path));
    return linkat(from.fd.get(), source.c_str(), place.parent->fd.get(), place.name.c_str(), 0) == 0
               ? absl::OkStatus()
               : ErrnoStatus(errno, "link", place.parent->At(place.name));
  }

  std::string root_;
  Directory parent_;
  std::string parent_path_;
};

}  // namespace

absl::Status ExtractSnapshot(const std::string& archive_path, const std::string& destination,
                             const SnapshotLimits& limits) {
  TP_ASSIGN_OR_RETURN(ArchiveReader reader, ArchiveReader::Open(archive_path, limits));
  TreeWriter writer(destination);
  for (;;) {
    TP_ASSIGN_OR_RETURN(const std::optional<ArchiveEntry> entry, reader.Next());
    if (!entry) return absl::OkStatus();
    TP_RETURN_IF_ERROR(writer.Write(reader, *entry));
  }
}

}  // namespace tp::launch
