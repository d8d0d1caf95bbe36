#include "snapshot/blob_upload.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <utility>

#include "base/fault_point.h"
#include "base/human_bytes.h"
#include "base/status.h"
#include "snapshot/layout.h"

namespace tp::snapshot {
namespace {

constexpr mode_t kTemporaryMode = 0600;
// One flush makes so many blobs durable at once: the first fsync pays for all.
constexpr size_t kFlushBlobs = 256;
constexpr int64_t kFlushBytes = int64_t{64} << 20;
// Interrupted uploads that are kept for one owner.
constexpr size_t kMaxPartials = 8;
constexpr size_t kReadBytes = 256 * 1024;

// A user name is not a file name.
std::string PartialFolder(const std::string& owner) {
  Sha256 digest;
  digest.Update(owner);
  return "partial/" + digest.HexDigest().substr(0, 32);
}

absl::Status HashFile(int fd, const std::string& path, Sha256* digest) {
  std::vector<char> buffer(kReadBytes);
  for (off_t at = 0;;) {
    const ssize_t got = pread(fd, buffer.data(), buffer.size(), at);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ErrnoStatus(errno, "read", path);
    if (got == 0) return absl::OkStatus();
    digest->Update({buffer.data(), static_cast<size_t>(got)});
    at += got;
  }
}

}  // namespace

absl::flat_hash_map<std::string, int64_t> PartialBlobs(const Directory& folder, const std::string& owner) {
  absl::flat_hash_map<std::string, int64_t> partials;
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(opendir(folder.At(PartialFolder(owner)).c_str()), closedir);
  if (!stream) return partials;
  while (const dirent* entry = readdir(stream.get())) {
    struct stat about {};
    if (!IsSha256(entry->d_name)) continue;
    if (fstatat(dirfd(stream.get()), entry->d_name, &about, AT_SYMLINK_NOFOLLOW) != 0) continue;
    partials[entry->d_name] = about.st_size;
  }
  return partials;
}

BlobUpload::~BlobUpload() {
  if (receiving_) KeepPartial();
  // Nobody was promised these: what can't be kept is sent again.
  Flush().IgnoreError();
}

absl::Status BlobUpload::CheckRoom(int64_t bytes) const {
  if (bytes < 0 || bytes > place_.limits.max_bytes) {
    return InvalidArgument("a file of a snapshot has at most {}, this one {} bytes: leave it out by .tpignore",
                           HumanBytes(place_.limits.max_bytes), bytes);
  }
  if (place_.index.UnreferencedBytes(owner_) + whole_bytes_ + bytes <= place_.limits.max_user_bytes) {
    return absl::OkStatus();
  }
  return Error(absl::StatusCode::kResourceExhausted,
               "{} has uploaded {} that no snapshot refers to: submit what is uploaded, or wait until it is collected",
               owner_, HumanBytes(place_.limits.max_user_bytes));
}

absl::Status BlobUpload::Begin(const std::string& sha256, int64_t bytes, int64_t offset) {
  if (receiving_) {
    return InvalidArgument("blob {} ended after {} of {} bytes", current_.sha256, received_bytes_, current_.bytes);
  }
  if (!IsSha256(sha256)) return InvalidArgument("a blob's SHA-256 has 64 lower-case hex digits");
  if (offset < 0 || offset > bytes) return InvalidArgument("blob {} of {} bytes from {} on", sha256, bytes, offset);
  current_ = Blob{.sha256 = sha256, .bytes = bytes, .temporary = ""};
  digest_ = Sha256();
  received_bytes_ = offset;
  if (!place_.index.TouchBlob(sha256, place_.now())) {
    TP_RETURN_IF_ERROR(CheckRoom(bytes));
    TP_RETURN_IF_ERROR(offset > 0 ? Resume(offset) : Open());
  }
  receiving_ = true;
  return received_bytes_ == bytes ? Complete() : absl::OkStatus();
}

absl::Status BlobUpload::Open() {
  current_.temporary = "tmp/" + RandomName();
  const int flags = O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
  fd_.reset(openat(place_.folder.fd.get(), current_.temporary.c_str(), flags, kTemporaryMode));
  return fd_.valid() ? absl::OkStatus() : ErrnoStatus(errno, "create", PathOf(current_.temporary));
}

// Taken out of its place first: of two uploads that want to go on with it, one does.
absl::Status BlobUpload::Resume(int64_t offset) {
  const std::string partial = fmt::format("{}/{}", PartialFolder(owner_), current_.sha256);
  current_.temporary = "tmp/" + RandomName();
  const int folder = place_.folder.fd.get();
  if (renameat(folder, partial.c_str(), folder, current_.temporary.c_str()) != 0) {
    return FailedPrecondition("there is no interrupted upload of {}: ask again for what is missing", current_.sha256);
  }
  const std::string path = PathOf(current_.temporary);
  fd_.reset(openat(folder, current_.temporary.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  if (!fd_.valid()) return ErrnoStatus(errno, "open", path);
  struct stat about {};
  if (fstat(fd_.get(), &about) != 0) return ErrnoStatus(errno, "look at", path);
  if (about.st_size < offset) {
    Discard(current_);
    return FailedPrecondition("of {} only {} bytes had arrived: ask again for what is missing", current_.sha256,
                              about.st_size);
  }
  if (ftruncate(fd_.get(), offset) != 0) return ErrnoStatus(errno, "cut", path);
  TP_RETURN_IF_ERROR(HashFile(fd_.get(), path, &digest_));
  if (lseek(fd_.get(), 0, SEEK_END) < 0) return ErrnoStatus(errno, "seek in", path);
  return absl::OkStatus();
}

absl::Status BlobUpload::Append(std::string_view data) {
  if (data.empty()) return absl::OkStatus();
  const auto size = static_cast<int64_t>(data.size());
  if (!receiving_ || received_bytes_ + size > current_.bytes) {
    if (receiving_) Discard(current_);
    receiving_ = false;
    return InvalidArgument("data beyond the {} bytes that blob {} was announced with", current_.bytes, current_.sha256);
  }
  counts_.bytes += size;
  received_bytes_ += size;
  if (!current_.temporary.empty()) {
    TP_RETURN_IF_ERROR(WriteAll(fd_.get(), data, PathOf(current_.temporary)));
    digest_.Update(data);
  }
  return received_bytes_ == current_.bytes ? Complete() : absl::OkStatus();
}

absl::Status BlobUpload::Complete() {
  receiving_ = false;
  ++counts_.blobs;
  if (current_.temporary.empty()) return absl::OkStatus();
  if (const std::string arrived = digest_.HexDigest(); arrived != current_.sha256) {
    Discard(current_);
    return InvalidArgument("blob {} arrived with the digest {}: the file changed while it was sent; submit again",
                           current_.sha256, arrived);
  }
  // Writing starts now, so that the flush finds most of it done. A hint: errors show at the flush.
  sync_file_range(fd_.get(), 0, 0, SYNC_FILE_RANGE_WRITE);
  whole_bytes_ += current_.bytes;
  fd_.reset();  // many may wait for the flush
  whole_.push_back(std::move(current_));
  return whole_.size() >= kFlushBlobs || whole_bytes_ >= kFlushBytes ? Flush() : absl::OkStatus();
}

absl::Status BlobUpload::Flush() {
  const std::vector<Blob> blobs = std::exchange(whole_, {});
  whole_bytes_ = 0;
  if (blobs.empty()) return absl::OkStatus();
  ReachFaultPoint(FaultPoint::kBeforeBlobs);
  absl::Status status = MakeDurable(blobs);
  if (!status.ok()) {
    for (const Blob& blob : blobs) Discard(blob);
    return status;
  }
  ReachFaultPoint(FaultPoint::kAfterBlobs);
  const absl::Time now = place_.now();
  for (const Blob& blob : blobs) place_.index.AddBlob(blob.sha256, blob.bytes, owner_, now);
  return absl::OkStatus();
}

absl::Status BlobUpload::MakeDurable(const std::vector<Blob>& blobs) const {
  const int folder = place_.folder.fd.get();
  for (const Blob& blob : blobs) {
    const UniqueFd fd(openat(folder, blob.temporary.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    if (!fd.valid() || fsync(fd.get()) != 0) return ErrnoStatus(errno, "fsync", PathOf(blob.temporary));
  }
  std::set<std::string> touched;
  for (const Blob& blob : blobs) {
    const std::string path = BlobPath(blob.sha256);
    const std::string directory = path.substr(0, path.rfind('/'));
    const bool first = touched.insert(directory).second;
    if (first && mkdirat(folder, directory.c_str(), 0700) == 0) touched.insert("blobs");
    place_.index.AwaitRemovalOf(blob.sha256);
    if (renameat(folder, blob.temporary.c_str(), folder, path.c_str()) != 0) {
      return ErrnoStatus(errno, "rename to", PathOf(path));
    }
  }
  ReachFaultPoint(FaultPoint::kBlobsRenamed);
  for (const std::string& path : touched) {
    TP_ASSIGN_OR_RETURN(const Directory directory, OpenDirectory(PathOf(path)));
    TP_RETURN_IF_ERROR(SyncDirectory(directory));
  }
  return absl::OkStatus();
}

absl::StatusOr<BlobUpload::Counts> BlobUpload::Finish() {
  if (receiving_) {
    return InvalidArgument("blob {} ended after {} of {} bytes", current_.sha256, received_bytes_, current_.bytes);
  }
  TP_RETURN_IF_ERROR(Flush());
  return counts_;
}

// Not fsynced: the digest at the end tells whether this beginning was the right one.
void BlobUpload::KeepPartial() {
  if (current_.temporary.empty()) return;
  const std::string partials = PartialFolder(owner_);
  const auto known = PartialBlobs(place_.folder, owner_);
  const bool room = known.size() < kMaxPartials || known.contains(current_.sha256);
  const int folder = place_.folder.fd.get();
  mkdirat(folder, partials.c_str(), 0700);  // most often there
  const std::string path = fmt::format("{}/{}", partials, current_.sha256);
  if (!room || received_bytes_ == 0 || renameat(folder, current_.temporary.c_str(), folder, path.c_str()) != 0) {
    Discard(current_);
  }
}

void BlobUpload::Discard(const Blob& blob) const {
  if (!blob.temporary.empty()) unlinkat(place_.folder.fd.get(), blob.temporary.c_str(), 0);
}

}  // namespace tp::snapshot
