// What a snapshot holds: a tree of files by digest, directories and links. One canonical text stands for a
// tree, and its SHA-256 is the snapshot's id, so that client and server agree on it without talking.
//
// The text: the line `tp-manifest 1`, then each entry, by the bytes of its path, ended by a NUL:
//   d PATH            a directory
//   f SHA256 BYTES PATH   a file;  x SHA256 BYTES PATH  an executable one
//   l PATH NUL TARGET     a symbolic link
// Values; safe from any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace tp::snapshot {

enum class EntryKind : uint8_t { kFile, kDirectory, kSymlink };

struct Entry {
  std::string path;  // any bytes; relative, `/` between the parts
  EntryKind kind = EntryKind::kFile;
  bool executable = false;  // of a file
  std::string sha256;       // of a file's content, 64 lower-case hex digits
  int64_t bytes = 0;        // of a file
  std::string link_target;  // of a link
  bool operator==(const Entry&) const = default;
};

struct Limits {
  int64_t max_bytes = int64_t{2} << 30;         // of one snapshot's files
  int64_t max_entries = 200'000;                // of one snapshot
  int64_t max_user_bytes = int64_t{100} << 30;  // blobs that one user's snapshots refer to, each once
  // How long what nothing refers to stays after someone was told that it is there: longer than the longest
  // upload, and than the way from an upload to its run.
  absl::Duration grace = absl::Hours(6);
};

// Of one manifest's text, whatever the limits.
inline constexpr size_t kMaxManifestBytes = size_t{64} << 20;

// 64 lower-case hex digits: an id or digest becomes part of a path.
bool IsSha256(std::string_view text);

// INVALID_ARGUMENT for more entries than allowed.
absl::Status CheckCount(size_t entries, const Limits& limits);
// The same, also for more bytes or text; of bytes, naming the largest files.
absl::Status CheckSize(const std::vector<Entry>& entries, const Limits& limits);

class Manifest {
 public:
  // Sorts, and lets nothing through that could leave the tree it is written into or means two things:
  // absolute paths, `..`, `.` and empty parts, NUL, names or paths too long for a file system, a path
  // twice, an entry whose parent is no directory of the manifest, links that lead out of the tree, on
  // their own or through other links. INVALID_ARGUMENT names the entry.
  static absl::StatusOr<Manifest> Make(std::vector<Entry> entries);

  // DATA_LOSS where `text` is not the canonical text of a manifest.
  static absl::StatusOr<Manifest> Parse(std::string_view text);

  const std::vector<Entry>& entries() const { return entries_; }
  const std::string& text() const { return text_; }
  const std::string& id() const { return id_; }
  int64_t files() const { return files_; }
  int64_t bytes() const { return bytes_; }

 private:
  explicit Manifest(std::vector<Entry> entries);

  std::vector<Entry> entries_;
  std::string text_;
  std::string id_;
  int64_t files_ = 0;
  int64_t bytes_ = 0;
};

}  // namespace tp::snapshot
