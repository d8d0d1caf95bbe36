#include "cli/download.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>

#include "base/status.h"
#include "cli/render/text.h"
#include "cli/stream.h"
#include "cli/unique_fd.h"
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

}  // namespace

bool IsSafeResultPath(std::string_view path) {
  if (path.empty() || EscapeControl(path) != path) return false;
  for (const std::string& part : Parts(path)) {
    if (part.empty() || part == "." || part == "..") return false;
  }
  return true;
}

absl::Status PrintResult(Client& client, const std::string& run, const std::string& path, int fd) {
  int64_t offset = 0;
  absl::Status written;
  const absl::StatusOr<StreamEnd> end = ReadStream<v1::ReadResultResponse>(
      client, {},
      [&](grpc::ClientContext* call) {
        v1::ReadResultRequest request;
        request.set_run(run);
        request.set_path(path);
        request.set_offset(offset);
        return client.stub<v1::RunService::Stub>().ReadResult(call, request);
      },
      [&](const v1::ReadResultResponse& response) {
        written = WriteAll(fd, response.data(), path);
        offset += static_cast<int64_t>(response.data().size());
        return written.ok();
      });
  return written.ok() ? end.status() : written;
}

absl::Status DownloadResult(Client& client, const std::string& run, const std::string& path,
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
  const std::string partial = fmt::format(".{}.{}.part", name.substr(0, 200), ::getpid());
  const UniqueFd file(
      ::openat(parent.get(), partial.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666));
  if (!file.valid()) return LocalError(path, "create");
  absl::Status status = PrintResult(client, run, path, file.get());
  if (status.ok() && ::renameat(parent.get(), partial.c_str(), parent.get(), name.c_str()) != 0) {
    status = LocalError(path, "store");
  }
  if (!status.ok()) ::unlinkat(parent.get(), partial.c_str(), 0);
  return status;
}

}  // namespace tp::cli
