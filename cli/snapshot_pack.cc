#include "cli/snapshot_pack.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <sys/stat.h>

#include "base/status.h"

namespace tp::cli {
namespace {

constexpr size_t kChunkBytes = 256 * 1024;

using Archive = std::unique_ptr<archive, decltype([](archive* writer) { archive_write_free(writer); })>;
using ArchiveEntry = std::unique_ptr<archive_entry, decltype([](archive_entry* entry) { archive_entry_free(entry); })>;
using Digest = std::unique_ptr<EVP_MD_CTX, decltype([](EVP_MD_CTX* digest) { EVP_MD_CTX_free(digest); })>;

std::string TemporaryDirectory() {
  const char* named = std::getenv("TMPDIR");
  return named != nullptr && *named != '\0' ? named : "/tmp";
}

absl::StatusOr<UniqueFd> OpenNamelessFile() {
  const std::string directory = TemporaryDirectory();
  UniqueFd fd(::open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (fd.valid()) return fd;
  // Not every filesystem has nameless files.
  std::string path = directory + "/tp-snapshot-XXXXXX";
  fd = UniqueFd(::mkostemp(path.data(), O_CLOEXEC));
  if (!fd.valid())
    return InvalidArgument("cannot create a file in {}: {}; set TMPDIR", directory, std::strerror(errno));
  ::unlink(path.c_str());
  return fd;
}

// Where the archive's bytes go: to the file and through the digest.
class Sink {
 public:
  explicit Sink(int fd) : fd_(fd), digest_(EVP_MD_CTX_new()) {
    EVP_DigestInit_ex(digest_.get(), EVP_sha256(), nullptr);
  }

  static la_ssize_t Write(archive*, void* self, const void* data, size_t size) {
    return static_cast<Sink*>(self)->Append(static_cast<const char*>(data), size);
  }

  std::string HexDigest() {
    unsigned char raw[EVP_MAX_MD_SIZE];
    unsigned int size = 0;
    EVP_DigestFinal_ex(digest_.get(), raw, &size);
    std::string hex;
    for (unsigned int i = 0; i < size; ++i) hex += fmt::format("{:02x}", raw[i]);
    return hex;
  }

  int64_t bytes() const { return bytes_; }
  int error() const { return error_; }

 private:
  la_ssize_t Append(const char* data, size_t size) {
    const ssize_t written = ::write(fd_, data, size);
    if (written < 0) {
      error_ = errno;
      return -1;
    }
    EVP_DigestUpdate(digest_.get(), data, static_cast<size_t>(written));
    bytes_ += written;
    return written;
  }

  const int fd_;
  Digest digest_;
  int64_t bytes_ = 0;
  int error_ = 0;
};

class Packer {
 public:
  Packer(const FileTree& tree, const PackProgress& progress, Sink& sink)
      : tree_(tree), progress_(progress), sink_(sink), writer_(archive_write_new()), buffer_(kChunkBytes) {}

  absl::Status Pack() {
    archive_write_set_format_pax_restricted(writer_.get());
    archive_write_set_bytes_per_block(writer_.get(), static_cast<int>(kChunkBytes));
    archive_write_set_bytes_in_last_block(writer_.get(), 1);
    if (archive_write_open(writer_.get(), &sink_, nullptr, Sink::Write, nullptr) != ARCHIVE_OK) return WriteError();
    for (const TreeEntry& entry : tree_.entries) TP_RETURN_IF_ERROR(PackEntry(entry));
    if (archive_write_close(writer_.get()) != ARCHIVE_OK) return WriteError();
    return absl::OkStatus();
  }

 private:
  absl::Status PackEntry(const TreeEntry& entry) {
    const ArchiveEntry header(archive_entry_new());
    archive_entry_set_pathname(header.get(), entry.path.c_str());
    archive_entry_set_mtime(header.get(), 0, 0);
    archive_entry_set_uid(header.get(), 0);
    archive_entry_set_gid(header.get(), 0);
    switch (entry.kind) {
      case EntryKind::kDirectory:
        archive_entry_set_filetype(header.get(), AE_IFDIR);
        archive_entry_set_perm(header.get(), 0755);
        return WriteHeader(header.get());
      case EntryKind::kSymlink:
        archive_entry_set_filetype(header.get(), AE_IFLNK);
        archive_entry_set_perm(header.get(), 0777);
        archive_entry_set_symlink(header.get(), entry.link_target.c_str());
        return WriteHeader(header.get());
      case EntryKind::kFile:
        archive_entry_set_filetype(header.get(), AE_IFREG);
        archive_entry_set_perm(header.get(), entry.executable ? 0755 : 0644);
        archive_entry_set_size(header.get(), entry.bytes);
        TP_RETURN_IF_ERROR(WriteHeader(header.get()));
        return WriteContent(entry);
    }
    return absl::OkStatus();
  }

  // A warning is a name that is not UTF-8: it is stored as the bytes it is.
  absl::Status WriteHeader(archive_entry* header) {
    return archive_write_header(writer_.get(), header) < ARCHIVE_WARN ? WriteError() : absl::OkStatus();
  }

  absl::Status WriteContent(const TreeEntry& entry) {
    const UniqueFd fd(::openat(tree_.root.get(), entry.path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
    if (!fd.valid()) return ReadError(entry, std::strerror(errno));
    int64_t left = entry.bytes;
    while (left > 0) {
      const auto wanted = static_cast<size_t>(std::min<int64_t>(left, static_cast<int64_t>(buffer_.size())));
      const ssize_t got = ::read(fd.get(), buffer_.data(), wanted);
      if (got < 0) return ReadError(entry, std::strerror(errno));
      if (got == 0) return ReadError(entry, "became shorter while it was read; submit again");
      if (archive_write_data(writer_.get(), buffer_.data(), static_cast<size_t>(got)) != got) return WriteError();
      left -= got;
      done_bytes_ += got;
      progress_(done_bytes_, tree_.bytes);
    }
    return absl::OkStatus();
  }

  static absl::Status ReadError(const TreeEntry& entry, std::string_view why) {
    return InvalidArgument("{}: {}", entry.path, why);
  }

  absl::Status WriteError() const {
    const char* why = sink_.error() != 0 ? std::strerror(sink_.error()) : archive_error_string(writer_.get());
    return InvalidArgument("cannot write the snapshot in {}: {}; set TMPDIR to a place with more room",
                           TemporaryDirectory(), why == nullptr ? "unknown" : why);
  }

  const FileTree& tree_;
  const PackProgress& progress_;
  Sink& sink_;
  Archive writer_;
  std::vector<char> buffer_;
  int64_t done_bytes_ = 0;
};

}  // namespace

absl::StatusOr<PackedSnapshot> PackTree(const FileTree& tree, const PackProgress& progress) {
  PackedSnapshot packed;
  TP_ASSIGN_OR_RETURN(packed.archive, OpenNamelessFile());
  Sink sink(packed.archive.get());
  TP_RETURN_IF_ERROR(Packer(tree, progress, sink).Pack());
  packed.archive_bytes = sink.bytes();
  packed.sha256 = sink.HexDigest();
  packed.files = tree.files;
  packed.content_bytes = tree.bytes;
  return packed;
}

}  // namespace tp::cli
