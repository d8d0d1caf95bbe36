#include "tpd/data_dir.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "base/file.h"
#include "base/status.h"

namespace tp::tpd {
namespace {

namespace fs = std::filesystem;

// The whole path exists afterwards; only what is missing is made.
absl::Status MakeDirectories(const fs::path& path) {
  if (path.has_parent_path() && path.parent_path() != path) {
    std::error_code ignored;
    if (!fs::exists(path.parent_path(), ignored)) TP_RETURN_IF_ERROR(MakeDirectories(path.parent_path()));
  }
  if (mkdir(path.c_str(), 0700) == 0 || errno == EEXIST) return absl::OkStatus();
  return ErrnoStatus(errno, "make the directory", path.string());
}

}  // namespace

absl::StatusOr<std::string> DefaultDataDirectory() {
  if (const char* named = std::getenv("TP_DATA_DIR"); named != nullptr && *named != '\0') return std::string(named);
  if (geteuid() == 0) return std::string("/var/lib/tp");
  if (const char* home = std::getenv("HOME"); home != nullptr && *home == '/')
    return std::string(home) + "/.local/share/tp";
  return FailedPrecondition("HOME is not set: name the data directory with --data or TP_DATA_DIR");
}

absl::StatusOr<std::string> PrepareDirectory(const std::string& path) {
  std::error_code error;
  fs::path absolute = fs::absolute(path, error).lexically_normal();
  if (error) return FailedPrecondition("{} is not a usable path: {}", path, error.message());
  if (!absolute.has_filename()) absolute = absolute.parent_path();
  TP_RETURN_IF_ERROR(MakeDirectories(absolute));
  TP_RETURN_IF_ERROR(OpenDirectory(absolute.string()).status());
  return absolute.string();
}

}  // namespace tp::tpd
