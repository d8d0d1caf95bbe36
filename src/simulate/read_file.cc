#include "simulate/read_file.h"

#include <filesystem>
#include <fstream>
#include <system_error>

#include "base/status.h"

namespace tp::simulate {

absl::StatusOr<std::string> ReadWhole(const std::string& path, size_t max_bytes) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  if (status.type() == std::filesystem::file_type::not_found) return NotFound("there is no file {}", path);
  if (error) return FailedPrecondition("cannot look at {}: {}", path, error.message());
  if (status.type() != std::filesystem::file_type::regular) return FailedPrecondition("{} is not a file", path);
  const uintmax_t bytes = std::filesystem::file_size(path, error);
  if (error) return FailedPrecondition("cannot look at {}: {}", path, error.message());
  if (bytes > max_bytes) return FailedPrecondition("{} is longer than {} MiB", path, max_bytes >> 20);
  std::string text(bytes, '\0');
  std::ifstream stream(path, std::ios::binary);
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!stream.is_open() || stream.bad()) return FailedPrecondition("cannot read {}: check its permissions", path);
  text.resize(static_cast<size_t>(stream.gcount()));
  return text;
}

std::string Beside(const std::string& file, const std::string& path) {
  return (std::filesystem::path(file).parent_path() / path).lexically_normal().string();
}

}  // namespace tp::simulate
