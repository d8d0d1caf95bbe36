// tp.yaml of a project, beside its code: what `tp submit` in that directory starts from. Decoded with the
// server's own strict decoder. Free of the wire's types, so that it is fuzzed alone.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "decode/type.h"

namespace tp::cli {

inline constexpr std::string_view kProjectFileName = "tp.yaml";

struct ProjectAfter {
  enum class When : uint8_t { kSuccess, kFailure, kAlways };

  decode::Located<std::string> step;  // empty: the step before
  When when = When::kSuccess;
};

struct ProjectStep {
  std::vector<std::string> command;
  std::vector<std::string> profiles;
  std::string image;
  decode::Entries<std::string, std::string> env;
  std::optional<absl::Duration> time_limit;
  std::optional<ProjectAfter> after;
};

struct ProjectNotice {
  enum class Event : uint8_t { kSucceeded, kFailed, kStopped, kPaused, kIdle };

  std::string to;  // a mail address, or a receiver of the deployment's
  std::vector<Event> on;
};

struct ProjectFile {
  std::string name;
  std::string image;
  std::vector<std::string> command;
  std::vector<std::string> profiles;
  decode::Entries<std::string, std::string> env;
  decode::Entries<std::string, std::string> labels;
  decode::Entries<std::string, ProjectStep> steps;
  std::vector<decode::Located<std::string>> then;
  std::vector<ProjectNotice> notify;
};

const decode::Type<ProjectFile>& ProjectFileType();

// INVALID_ARGUMENT: `file:line:column: sentence`, a line for each problem. `file` is only named.
absl::StatusOr<ProjectFile> ParseProjectFile(const std::string& file, std::string_view text);

// Nothing where the directory has no tp.yaml. FAILED_PRECONDITION: it cannot be read.
absl::StatusOr<std::optional<ProjectFile>> ReadProjectFile(const std::string& directory);

}  // namespace tp::cli
