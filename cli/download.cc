#include "cli/download.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <vector>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/sha256.h"
#include "base/status.h"
#include "cli/render/text.h"
#include "cli/stream.h"
#include "cli/write_all.h"

namespace tp::cli {
namespace {

std::vector<std::string> Parts(std::string_view path) {
  std::vector<std::string> parts;
  while (true) {
    const size_t slash = path.find('/');
    parts.emplace_back(path.substr(0, slash));
    if (slash == std::string_view::npos) return parts;
    path.remove_prefix(slash + 1);
  }
}

absl::Status LocalError(std::string_view path, std::string_view what) {
  return InvalidArgument("cannot {} {}: {}", what, path, std::strerror(errno));
}

absl::StatusOr<UniqueFd> OpenTarget(const std::string& directory) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) return InvalidArgument("cannot make {}: {}", directory, error.message());
  UniqueFd fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) return LocalError(directory, "open");
  return fd;
}

// One level down, made where it is missing, never through a link.
absl::StatusOr<UniqueFd> Descend(const UniqueFd& parent, const std::string& name) {
  if (::mkdirat(parent.get(), name.c_str(), 0777) != 0 && errno != EEXIST) return LocalError(name, "make");
  UniqueFd fd(::openat(parent.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd.valid()) return LocalError(name, "open");
  return fd;
}

// The file beside the target that a download grows in. Its name tells targets apart that begin alike.
std::string PartialName(const std::string& name) {
  constexpr size_t kKeptOfName = 200;
  constexpr size_t kHashDigits = 8;
  Sha256 digest;
  digest.Update(name);
  return fmt::format(".{}.{}.part", name.substr(0, kKeptOfName), digest.HexDigest().substr(0, kHashDigits));
}

// For this process alone. Another name for the file, or a file of somebody else's, could be written to by
// way of it: neither is taken.
absl::StatusOr<UniqueFd> OpenPartial(const UniqueFd& parent, const std::string& name, const std::string& path) {
  UniqueFd file(::openat(parent.get(), name.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666));
  if (!file.valid()) return LocalError(path, "create");
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) return LocalError(path, "look at");
  if (!S_ISREG(info.st_mode) || info.st_nlink != 1 || info.st_uid != ::geteuid()) {
    return InvalidArgument("cannot store {}: {} is in the way; remove it", path, name);
  }
  if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    return InvalidArgument("cannot store {}: another tp is at it", path);
  }
  return file;
}

// What has come of one file so far.
struct Received {
  int64_t bytes = 0;
  Sha256 digest;
  std::string expected;  // as the server says at the end; empty: it is older and says nothing
};

absl::Status Receive(Context& context, const std::string& run, const std::string& path, int fd, Received& received) {
  TP_ASSIGN_OR_RETURN(Client* const client, context.Connect());
  const StreamOptions options = {.on_away = [&] { context.Say("the server is away; waiting for it"); }};
  absl::Status written;
  const absl::StatusOr<StreamEnd> end = ReadStream<v1::ReadResultResponse>(
      *client, options,
      [&](grpc::ClientContext* call) {
        v1::ReadResultRequest request;
        request.set_run(run);
        request.set_path(path);
        request.set_offset(received.bytes);
        return client->stub<v1::RunService::Stub>().ReadResult(call, request);
      },
      [&](const v1::ReadResultResponse& response) {
        written = WriteAll(fd, response.data(), path);
        received.digest.Update(response.data());
        received.bytes += static_cast<int64_t>(response.data().size());
        if (!response.sha256().empty()) received.expected = response.sha256();
        return written.ok();
      });
  return written.ok() ? end.status() : written;
}

absl::Status Compare(Context& context, const std::string& path, Received& received) {
  if (received.expected.empty()) {
    context.Say(fmt::format("{}: not checked, the server is too old to send a checksum", path));
    return absl::OkStatus();
  }
  if (received.digest.HexDigest() == received.expected) return absl::OkStatus();
  return Error(absl::StatusCode::kDataLoss,
               "{}: what arrived is not what the server has (SHA-256 differs); the job may be writing it: try again",
               path);
}

// What was received before.
absl::StatusOr<Received> TakeUp(const UniqueFd& file, const std::string& path) {
  constexpr size_t kPiece = 1 << 20;
  Received received;
  std::string piece(kPiece, '\0');
  while (true) {
    const ssize_t got = ::read(file.get(), piece.data(), piece.size());
    if (got < 0) return LocalError(path, "read");
    if (got == 0) return received;
    received.digest.Update(std::string_view(piece).substr(0, static_cast<size_t>(got)));
    received.bytes += got;
  }
}

absl::Status Restart(const UniqueFd& file, const std::string& path) {
  if (::ftruncate(file.get(), 0) != 0 || ::lseek(file.get(), 0, SEEK_SET) != 0) return LocalError(path, "write");
  return absl::OkStatus();
}

// A file that is not what was half received before is received from its start.
absl::Status Fill(Context& context, const std::string& run, const std::string& path, const UniqueFd& file) {
  TP_ASSIGN_OR_RETURN(Received received, TakeUp(file, path));
  const bool resumed = received.bytes > 0;
  absl::Status status = Receive(context, run, path, file.get(), received);
  if (status.ok()) status = Compare(context, path, received);
  const bool other_file = absl::IsOutOfRange(status) || absl::IsDataLoss(status);
  if (!resumed || !other_file) return status;
  TP_RETURN_IF_ERROR(Restart(file, path));
  Received again;
  TP_RETURN_IF_ERROR(Receive(context, run, path, file.get(), again));
  return Compare(context, path, again);
}

// Worth keeping for the next try.
bool IsBrokenOff(const absl::Status& status) { return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status); }

}  // namespace

bool IsSafeResultPath(std::string_view path) {
  if (path.empty() || EscapeControl(path) != path) return false;
  for (const std::string& part : Parts(path)) {
    if (part.empty() || part == "." || part == "..") return false;
  }
  return true;
}

absl::Status PrintResult(Context& context, const std::string& run, const std::string& path) {
  Received received;
  TP_RETURN_IF_ERROR(Receive(context, run, path, STDOUT_FILENO, received));
  return Compare(context, path, received);
}

absl::Status DownloadResult(Context& context, const std::string& run, const std::string& path,
                            const std::string& directory) {
  if (!IsSafeResultPath(path)) {
    return InvalidArgument("result {}: a name that cannot be stored safely; print it with --to -", path);
  }
  TP_ASSIGN_OR_RETURN(UniqueFd parent, OpenTarget(directory));
  std::vector<std::string> parts = Parts(path);
  const std::string name = parts.back();
  parts.pop_back();
  for (const std::string& part : parts) {
    TP_ASSIGN_OR_RETURN(parent, Descend(parent, part));
  }
  const std::string partial = PartialName(name);
  TP_ASSIGN_OR_RETURN(const UniqueFd file, OpenPartial(parent, partial, path));
  absl::Status status = Fill(context, run, path, file);
  if (status.ok() && ::renameat(parent.get(), partial.c_str(), parent.get(), name.c_str()) != 0) {
    status = LocalError(path, "store");
  }
  if (!status.ok() && !IsBrokenOff(status)) ::unlinkat(parent.get(), partial.c_str(), 0);
  return status;
}

}  // namespace tp::cli
