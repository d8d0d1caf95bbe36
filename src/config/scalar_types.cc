#include "config/scalar_types.h"

#include <optional>

namespace tp::config {
namespace {

using decode::Problems;
using decode::YamlValue;

std::optional<std::string> WrongPath(const std::string& path) {
  if (path.empty() || path[0] != '/') return fmt::format("{} is not an absolute path", Quoted(path));
  if ((path + "/").find("/../") != std::string::npos || (path + "/").find("/./") != std::string::npos) {
    return fmt::format("{} holds . or ..; write the path out", Quoted(path));
  }
  if (path.find_first_not_of('/') == std::string::npos) return "the root directory itself cannot be used here";
  return std::nullopt;
}

}  // namespace

decode::Type<std::string> AbsolutePath() { return decode::Text("absolute path", WrongPath, "^/"); }

decode::Type<absl::TimeZone> TimeZone() {
  decode::Type<absl::TimeZone> type;
  type.words = "IANA time zone";
  type.schema = {{"type", "string"}};
  type.decode = [](const YamlValue& value, Problems& problems, absl::TimeZone& out) {
    if (value.kind != YamlValue::Kind::kScalar) {
      decode::AddMismatch(value, "a time zone such as Europe/Berlin", problems);
      return false;
    }
    // Absl also takes file names and offsets; neither is a zone that people can read.
    const bool path = value.text.empty() || value.text[0] == '/' || value.text.find("..") != std::string::npos;
    if (!path && absl::LoadTimeZone(value.text, &out)) return true;
    problems.Add(value.at, fmt::format("there is no time zone {}; write one such as Europe/Berlin or UTC, and see that "
                                       "the package tzdata is installed",
                                       Quoted(value.text)));
    return false;
  };
  type.text = [](const absl::TimeZone& zone) { return std::string(zone.name()); };
  return type;
}

}  // namespace tp::config
