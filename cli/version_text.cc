#include "cli/version_text.h"

#include <array>
#include <charconv>

namespace tp::cli {
namespace {

std::array<int, 3> Numbers(std::string_view version) {
  std::array<int, 3> numbers{};
  for (int& number : numbers) {
    std::from_chars(version.data(), version.data() + version.size(), number);
    const size_t dot = version.find('.');
    version = dot == std::string_view::npos ? std::string_view() : version.substr(dot + 1);
  }
  return numbers;
}

}  // namespace

std::string_view ClientVersion() { return TP_VERSION; }

bool IsOlder(std::string_view version, std::string_view than) { return Numbers(version) < Numbers(than); }

std::string_view MajorMinor(std::string_view version) {
  const size_t first = version.find('.');
  if (first == std::string_view::npos) return version;
  return version.substr(0, version.find('.', first + 1));
}

}  // namespace tp::cli
